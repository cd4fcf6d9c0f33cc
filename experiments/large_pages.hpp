#pragma once
// Memory in large pages for processes that fill much of it once.

namespace epocast {

/// From now on, memory comes from a reserve that the system may back by large pages (2 MiB instead of 4 KiB on x86),
/// and what is given back stays with the process. A step of 300,000 tasks fills 300 MB, a page after the other, and the
/// page faults take longer than what is done with them. Nothing happens where address space is limited, or where
/// memory is not glibc's.
void use_large_pages();

}  // namespace epocast
