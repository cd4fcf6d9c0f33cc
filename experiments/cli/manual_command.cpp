#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/cli/commands.hpp"
#include "experiments/cli/word_option.hpp"

namespace epocast {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
}

/// "--format", "-h": all names of an option.
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// A text of the manual page: hyphens are minus signs, and no line begins a request.
std::string troff(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || text[i - 1] == '\n';
    if (begins && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\')
      out += "\\e";
    else if (text[i] == '-')
      out += "\\-";
    else
      out += text[i];
  }
  return out;
}

/// Text with its examples on lines of their own.
std::string paragraphs(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? std::string("\n.br\n") : std::string(1, c);
  std::string page;
  for (std::size_t at = 0; at < out.size();) {
    const std::size_t end = std::min(out.find('\n', at), out.size());
    const std::string line = out.substr(at, end - at);
    page += (line == ".br" ? line : troff(line)) + '\n';
    at = end + 1;
  }
  return page;
}

void write_command(std::ostream& out, const CLI::App& command, const std::string& before) {
  std::string arguments;
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional() && names_of(*option).empty()) arguments += " " + option->get_single_name();
  out << ".SS \"" << troff(before + command.get_name() + arguments) << "\"\n" << paragraphs(command.get_description());
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> names = names_of(*option);
    if (!names.empty() && names.back() == "--help") continue;
    std::string bold;
    for (const std::string& name : names) bold += (bold.empty() ? "\\fB" : ", \\fB") + troff(name) + "\\fP";
    out << ".TP\n"
        << bold
        << (names.empty()          ? "\\fI" + troff(option->get_single_name()) + "\\fP"
            : takes_value(*option) ? " \\fIVALUE\\fP"
                                   : "")
        << '\n'
        << paragraphs(option->get_description());
  }
  for (const CLI::App* inner : commands_of(command)) write_command(out, *inner, before + command.get_name() + " ");
}

int print_manual(const CLI::App& app) {
  std::cout << ".TH EPOCAST 1 \"\" \"epocast " << program_version() << "\" \"User Commands\"\n"
            << ".SH NAME\nepocast \\- time, traffic and memory of distributed neural\\-network training\n"
            << ".SH SYNOPSIS\n.B epocast\n.I command\n.RI [ argument ...]\n"
            << ".SH DESCRIPTION\n"
            << paragraphs(app.get_description()) << ".SH COMMANDS\nEach takes \\-\\-help.\n";
  for (const CLI::App* command : commands_of(app)) write_command(std::cout, *command, "");
  std::cout << ".SH ENVIRONMENT\n.TP\nEPOCAST_DATA\nThe folder of platforms, networks and calibrations.\n"
            << ".SH EXIT STATUS\n0: done. 1: something failed or was missed. 2: bad input. 3: an internal error.\n";
  return kDone;
}

/// What may follow a command: its options, and commands of its own.
std::string words_after(const CLI::App& command) {
  std::string words;
  for (const CLI::App* inner : commands_of(command)) words += inner->get_name() + ' ';
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : names_of(*option)) words += name + ' ';
  return words.substr(0, words.find_last_not_of(' ') + 1);
}

/// Words, and else the names of files.
void write_bash(std::ostream& out, const CLI::App& app) {
  out << "_epocast() {\n  local words\n  if ((COMP_CWORD == 1)); then\n    words='" << words_after(app)
      << "'\n  else\n    case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* command : commands_of(app))
    out << "      " << command->get_name() << ") words='" << words_after(*command) << "' ;;\n";
  out << "    esac\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
         "complete -o default -F _epocast epocast\n";
}

/// Text between single quotes.
std::string quoted_for_fish(const std::string& text) {
  std::string out = "'";
  for (const char c : text.substr(0, text.find('\n')))
    out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

void write_fish(std::ostream& out, const CLI::App& app) {
  for (const CLI::App* command : commands_of(app)) {
    out << "complete -c epocast -n __fish_use_subcommand -a " << command->get_name() << " -d "
        << quoted_for_fish(command->get_description()) << '\n';
    const std::string seen = "complete -c epocast -n '__fish_seen_subcommand_from " + command->get_name() + "' ";
    for (const CLI::App* inner : commands_of(*command))
      out << seen << "-a " << inner->get_name() << " -d " << quoted_for_fish(inner->get_description()) << '\n';
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames())
        out << seen << "-l " << name << (takes_value(*option) ? " -r" : "") << " -d "
            << quoted_for_fish(option->get_description()) << '\n';
  }
}

int print_completion(const CLI::App& app, const std::string& shell) {
  const std::vector<std::string> shells{"bash", "zsh", "fish"};
  switch (choose("completion", shell, shells)) {
    case 0: write_bash(std::cout, app); break;
    case 1:
      std::cout << "autoload -U +X bashcompinit && bashcompinit\n";
      write_bash(std::cout, app);
      break;
    default: write_fish(std::cout, app);
  }
  return kDone;
}

}  // namespace

void add_manual_command(CLI::App& app, CommandContext& context) {
  CLI::App* manual =
      app.add_subcommand("manual", "Print the manual page.\nExample: epocast manual > epocast.1 && man ./epocast.1");
  manual->callback([&app, &context] { context.action = [&app] { return print_manual(app); }; });

  auto shell = std::make_shared<std::string>();
  CLI::App* completion =
      app.add_subcommand("completion",
                         "Print what makes a shell complete epocast's commands and options.\n"
                         "Example: epocast completion bash > ~/.local/share/bash-completion/completions/epocast");
  completion->add_option("shell", *shell, "bash, zsh or fish")->required();
  completion->callback(
      [shell, &app, &context] { context.action = [shell, &app] { return print_completion(app, *shell); }; });
}

}  // namespace epocast
