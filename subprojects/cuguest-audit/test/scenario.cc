// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/scenario.h"

#include <cstdlib>
#include <iterator>
#include <map>
#include <sstream>

namespace cuguest_test {
namespace {

namespace audit = cuguest::audit;

struct Named {
  const char* name;
  const char* path;
  const char* build_id = "-";
};

constexpr Named kObjects[] = {
    {"", ""},
    {"host", "/bin/host"},
    {"guest", "/lib/libguest.so"},
    {"third", "/lib/libthird.so"},
    {"fourth", "/lib/libfourth.so", "44"},
    {"cublas", "/usr/lib/libcublas.so.13"},
    {"libc", "/usr/lib/x86_64-linux-gnu/libc.so.6"},
    {"fiber", "/lib/libfiber.so"},
    {"python", "/usr/bin/python3.12"},
    {"libpython", "/usr/lib/libpython3.12.so.1.0"},
    {"ffi", "/usr/lib/libffi.so.8"},
    {"ctypes", "/usr/lib/python3.12/lib-dynload/_ctypes.cpython-312-x86_64-linux-gnu.so"},
    {"c10", "/venv/lib/python3.12/site-packages/torch/lib/libc10_cuda.so"},
    {"torch", "/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so"},
    {"pycuda", "/venv/lib/python3.12/site-packages/pycuda/_driver.so"},
    // Loaded again at other addresses, a copy of it, and another build at the same path.
    {"third_again", "/lib/libthird.so"},
    {"fourth_again", "/lib/libfourth.so", "44"},
    {"fourth_copy", "/tmp/1/libfourth.so", "44"},
    {"fourth_twin", "/lib/libtwin.so", "44"},
    {"fourth_rebuilt", "/lib/libfourth.so", "45"},
    {"bindings", "/venv/lib/python3.12/site-packages/cuda/bindings/driver.so"},
    // Functions of Python, as logs have them.
    {"script", "/home/me/train.py", "-::0:main"},
    {"threading", "/usr/lib/python3.12/threading.py", "-::0:Thread.run"},
    {"encoder", "/venv/lib/python3.12/site-packages/encoder/api.py", "-::0:encode"},
    {"inner", "/home/me/inner/parts/a.py", "-::14:a"},
    {"inner_other", "/home/me/inner/b.py", "-::14:b"},
};

std::size_t IndexOf(const std::string& name) {
  for (std::size_t i = 1; i < std::size(kObjects); ++i) {
    if (name == kObjects[i].name) {
      return i;
    }
  }
  return 0;  // as code of no object
}

// The words of a chain's line, from frames with the innermost first.
std::string FramesOf(const std::vector<std::string>& words) {
  const bool is_fiber = !words.empty() && words.back().rfind("fiber", 0) == 0;
  std::ostringstream frames;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i];
    unsigned long offset = 1;
    long shift = 0;
    if (const std::size_t at = name.find('@'); at != std::string::npos) {
      shift = std::strtol(name.c_str() + at + 1, nullptr, 10);
      name.resize(at);
    }
    if (const std::size_t at = name.find(':'); at != std::string::npos) {
      offset = std::strtoul(name.c_str() + at + 1, nullptr, 10);
      name.resize(at);
    }
    const unsigned long base = is_fiber ? 0x90000 : 0x50000;
    frames << " " << IndexOf(name) << "+" << std::hex << offset << "@"
           << base - 0x100 * (words.size() - i) + shift << std::dec;
  }
  return frames.str();
}

std::string NameOf(const audit::Place& place) {
  if (place.object == 0) {
    return "-";
  }
  const std::string name = kObjects[place.object].name;
  return place.offset == 1 ? name : name + ":" + std::to_string(place.offset);
}

}  // namespace

std::string LogOf(std::string_view scenario, bool forked) {
  std::ostringstream log;
  log << "cuguest-audit-log 1\nprocess 1 100 99 " << (forked ? "forked" : "-") << " 0 /bin/host\n";
  for (std::size_t i = 1; i < std::size(kObjects); ++i) {
    log << "object " << i << " " << kObjects[i].build_id << " " << kObjects[i].path << "\n";
  }
  std::map<std::string, int> chains;
  std::istringstream lines{std::string(scenario)};
  int time = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind = "call";
    std::string name = "-";
    std::string thread = "1";
    std::string fields;
    int times = 1;
    std::vector<std::string> frames;
    bool is_chain = false;
    for (std::string word; words >> word;) {
      const bool is_thread = word.size() > 1 && word[0] == 't' &&
                             word.find_first_not_of("0123456789", 1) == std::string::npos;
      if (is_chain) {
        frames.push_back(word);
      } else if (word == "|") {
        is_chain = true;
      } else if (is_thread) {
        thread = word.substr(1);
      } else if (word.back() == '*') {
        times = std::atoi(word.c_str());
      } else if (const std::size_t at = word.find('>'); at != std::string::npos) {
        fields += " before=" + word.substr(0, at) + " after=" + word.substr(at + 1);
      } else if (word.find('=') != std::string::npos) {
        fields += " " + word;
      } else if (word == "check" || word == "entered" || word == "context" || word == "used" ||
                 word == "thread_end" || word == "process_end" || word == "initialized" ||
                 word == "unloaded" || word == "made" || word == "stale") {
        kind = word;
      } else {
        name = word;
      }
    }
    if (frames.empty() && name == "-" && kind == "call") {
      continue;  // an empty line
    }
    const std::string chain = FramesOf(frames);
    const auto [known, is_new] = chains.emplace(chain, static_cast<int>(chains.size()) + 1);
    if (is_new) {
      log << "chain " << known->second << chain << "\n";
    }
    for (int i = 0; i < times; ++i) {
      log << kind << " " << thread << " " << ++time << " " << name << fields
          << " chain=" << known->second << "\n";
    }
  }
  log << "end\n";
  return log.str();
}

Replayed::Replayed(std::string_view log) {
  audit::LogReader reader(this);
  reader.Read(log);
  reader.Finish();
  error_ = reader.error();
}

void Replayed::OnProcess(const audit::Process& process) {
  analysis_ = std::make_unique<audit::Analysis>(process.forked, process.program);
}

void Replayed::OnObject(std::uint32_t, std::uint32_t index, const audit::Object& object) {
  analysis_->OnObject(index, object);
}

void Replayed::OnEvent(std::uint32_t, const audit::Event& event) { analysis_->OnEvent(event); }

std::vector<std::string> Replayed::Summary() const {
  std::vector<std::string> lines;
  for (const audit::Finding& finding : analysis_->Findings()) {
    lines.push_back(std::string(audit::Identifier(finding.kind)) + " " + finding.call + " " +
                    NameOf(finding.culprit) + ">" + NameOf(finding.victim) +
                    (finding.count == 1 ? "" : " x" + std::to_string(finding.count)));
  }
  return lines;
}

std::string Replayed::Text() const {
  std::string text;
  for (const audit::Finding& finding : analysis_->Findings()) {
    text += audit::Text(finding, analysis_->objects());
  }
  return text;
}

std::string FindingsIn(std::string_view scenario, bool forked) {
  const Replayed replayed(LogOf(scenario, forked));
  std::string joined = replayed.error();
  for (const std::string& line : replayed.Summary()) {
    joined += (joined.empty() ? "" : "; ") + line;
  }
  return joined;
}

}  // namespace cuguest_test
