#pragma once
// Which elements and attributes a platform file may have, and in which order.

#include "platforms/xml_source.hpp"

namespace epocast {

/// Checks one element and the tags of its children (not what the children hold). Throws ConfigError.
void check_element(const XmlSource& xml, pugi::xml_node element);

/// Checks DOCTYPE, root and version. Throws ConfigError.
void check_document(const XmlSource& xml);

}  // namespace epocast
