# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Sourced by test/run and examples/run, at the repository root: makes sure that
# what the build needs is there, then offers `build_in`.

# Package, and a command that succeeds where it is not needed. Asking for the
# thing rather than for the package lets other suppliers of it count.
needs() {
  cat <<'LIST'
g++              command -v g++
meson            command -v meson
ninja-build      command -v ninja
pkg-config       command -v pkg-config
python3          command -v python3
libabsl-dev      pkg-config --exists absl_status absl_statusor absl_strings absl_cord
libboost-test-dev test -e "$(g++ -print-file-name=libboost_unit_test_framework.so)"
libbenchmark-dev pkg-config --exists benchmark
libeigen3-dev    pkg-config --exists eigen3
cmake            command -v cmake
LIST
}

# The same of what an example or a test is skipped without.
wants() {
  cat <<'LIST'
libffmpeg-nvenc-dev pkg-config --exists ffnvcodec
libdw-dev        pkg-config --exists libdw
LIST
}

# missing_packages: of the lines that it reads, which are as those of needs().
missing_packages() {
  local package probe
  while read -r package probe; do
    eval "$probe" >/dev/null 2>&1 </dev/null || echo "$package"
  done
}

# apt_get PACKAGE...: 1 if nobody here may install.
apt_get() {
  local as_root=()
  command -v apt-get >/dev/null || return 1
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return 1
    as_root=(sudo -n)
  fi
  "${as_root[@]}" apt-get update -qq </dev/null
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "$@" </dev/null >/dev/null
}

meson_is_new_enough() {
  [ "$(printf '0.64.0\n%s\n' "$(meson --version)" | sort -V | head -n1)" = 0.64.0 ]
}

# bootstrap NEED...: installs what needs() lists, and further lines like its; and what wants() does, if
# it may and there is such a package. Sets `ccache` to what goes before a compiler that Meson did not choose
# itself, before which it puts none.
bootstrap() {
  local packages wanted
  mapfile -t packages < <({ needs; printf '%s\n' "$@"; } | missing_packages)
  mapfile -t wanted < <(wants | missing_packages)
  if [ ${#packages[@]} -gt 0 ]; then
    echo "installing: ${packages[*]}"
    if ! apt_get "${packages[@]}"; then
      echo "packages are missing; run: sudo apt-get install -y ${packages[*]}" >&2
      exit 1
    fi
  fi
  if [ ${#wanted[@]} -gt 0 ]; then
    echo "installing: ${wanted[*]}"
    apt_get "${wanted[@]}" || echo "going on without: ${wanted[*]}; what needs it says skipped" >&2
  fi

  if ! meson_is_new_enough; then  # Ubuntu 22.04 has 0.61.2
    if [ ! -x build-tools/bin/meson ]; then
      echo "installing: Meson, into build-tools/ (the system's is older than 0.64.0)"
      python3 -c 'import ensurepip' 2>/dev/null || apt_get python3-venv || {
        echo 'packages are missing; run: sudo apt-get install -y python3-venv' >&2
        exit 1
      }
      python3 -m venv build-tools
      build-tools/bin/pip install --quiet 'meson>=0.64.0'
    fi
    PATH=$PWD/build-tools/bin:$PATH
  fi

  if ! command -v nvcc >/dev/null; then
    PATH=$PATH:/usr/local/cuda/bin
    if ! command -v nvcc >/dev/null; then
      echo 'the CUDA Toolkit was not found: neither nvcc on the PATH nor /usr/local/cuda/bin/nvcc' >&2
      exit 1
    fi
  fi

  ccache=()
  if command -v ccache >/dev/null; then
    ccache=(ccache)
    # What is compiled with a precompiled header it keeps if it may ignore that header's time.
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}
  fi
}

# build_in DIRECTORY TARGET... -- OPTION...: configures (again), then builds; everything, unless
# told. With as much debug information (-g1) as a backtrace needs.
build_in() {
  local directory=$1 targets=() mode=() common=(-Dbuildtype=debugoptimized -Dcpp_args=-g1)
  shift
  while [ "$1" != -- ]; do
    targets+=("$1")
    shift
  done
  shift
  [ ! -e "$directory/meson-private/coredata.dat" ] || mode=(--reconfigure)
  meson setup "${mode[@]}" "$directory" "${common[@]}" "$@" >"$directory.log" 2>&1 || {
    # A directory that another Meson or another compiler made is of no use.
    rm -rf -- "$directory"
    meson setup "$directory" "${common[@]}" "$@"
  }
  rm -f -- "$directory.log"
  # Since Meson 1.7 `all` does without what only tests need.
  [ ${#targets[@]} -gt 0 ] || targets=(all meson-test-prereq meson-benchmark-prereq)
  ninja -C "$directory" "${targets[@]}"
}
