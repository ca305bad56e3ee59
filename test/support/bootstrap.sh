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
xz-utils         command -v xz
LIST
}

# The same of what an example or a test is skipped without. A script that needs less of it says so before bootstrap().
optional=(libffmpeg-nvenc-dev libdw-dev libopenmpi-dev openmpi-bin)
wants() {
  cat <<'LIST'
libffmpeg-nvenc-dev pkg-config --exists ffnvcodec
libdw-dev        pkg-config --exists libdw
libopenmpi-dev   command -v mpicxx
openmpi-bin      command -v mpirun
LIST
}

# wanted: the lines of wants() that `optional` names.
wanted() {
  local package probe
  while read -r package probe; do
    [[ " ${optional[*]} " != *" $package "* ]] || echo "$package $probe"
  done < <(wants)
}

# missing_packages: of the lines that it reads, which are as those of needs().
missing_packages() {
  local package probe
  while read -r package probe; do
    eval "$probe" >/dev/null 2>&1 </dev/null || echo "$package"
  done
}

# apt_get PACKAGE...: 1 if nobody here may install. What else fails it says in `apt_said`.
apt_said=
apt_get() {
  local as_root=()
  apt_said=
  command -v apt-get >/dev/null || return 1
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return 1
    as_root=(sudo -n)
  fi
  echo "installing: $*"
  "${as_root[@]}" apt-get update -qq </dev/null >/dev/null 2>&1 || true  # what it lists already may do
  apt_said=$("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "$@" </dev/null 2>&1 >/dev/null) && return
  apt_said=" (apt-get: ${apt_said##*$'\n'})"
  return 1
}

# require PACKAGE...: installs them, or ends with what to do.
require() {
  apt_get "$@" || {
    echo "packages are missing$apt_said; run: sudo apt-get install -y $*" >&2
    exit 1
  }
}

meson_is_new_enough() {
  [ "$(printf '0.64.0\n%s\n' "$(meson --version)" | sort -V | head -n1)" = 0.64.0 ]
}

# fetch_meson: the newest one, into build-tools/meson/. It is there whole or not at all.
fetch_meson() {
  local said
  echo "fetching: Meson, into build-tools/meson/ (the system's is older than 0.64.0)"
  python3 -c 'import ensurepip' 2>/dev/null || require python3-venv
  python3 -m venv build-tools/meson
  if ! said=$(build-tools/meson/bin/pip install --quiet --retries 1 'meson>=0.64.0' 2>&1); then
    rm -rf build-tools/meson
    rmdir --ignore-fail-on-non-empty build-tools
    echo "Meson 0.64.0 or newer is needed, and pip could not fetch it (${said##*$'\n'}); install it, or run this again where the" \
      'Python package index can be reached' >&2
    exit 1
  fi
}

# fetch_toolkit DIRECTORY LIST...: makes DIRECTORY a toolkit, from the packages of these lists for pip: NVIDIA's.
# It is there whole or not at all.
fetch_toolkit() {
  local directory=$1 new=$1.new list lists=() part library said
  shift
  for list in "$@"; do
    lists+=(--requirement "$list")
  done
  python3 -m pip --version >/dev/null 2>&1 || apt_get python3-pip || {
    echo "the CUDA Toolkit was not found, and to fetch it takes pip$apt_said; install the toolkit (13.0 or newer), or run:" \
      'sudo apt-get install -y python3-pip' >&2
    exit 1
  }
  rm -rf -- "$new"
  mkdir -p "$new/tmp"
  # Nothing outside of DIRECTORY, whatever pip's configuration says of where to install.
  if ! said=$(TMPDIR=$PWD/$new/tmp PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 python3 -m pip install --quiet \
    --no-cache-dir --no-deps --only-binary :all: --require-hashes --retries 1 --target "$new" "${lists[@]}" 2>&1); then
    rm -rf -- "$new"
    rmdir --ignore-fail-on-non-empty "${new%/*}"
    echo "the CUDA Toolkit was not found, and pip could not fetch it (${said##*$'\n'}); install the toolkit" \
      '(13.0 or newer), or run this again where the Python package index can be reached' >&2
    exit 1
  fi
  for part in "$new"/nvidia/*/; do  # NCCL has a folder of its own
    [ "${part%/}" = "$new/nvidia/cu13" ] || cp -rl -- "$part." "$new/nvidia/cu13"
  done
  (
    cd "$new/nvidia/cu13/lib" || exit
    for library in *.so.*; do
      ln -s "$library" "${library%%.so.*}.so"
    done
    ln -s lib ../lib64
  )
  rm -rf -- "$new/tmp"
  mv -- "$new" "$directory"
}

# toolkit: finds a toolkit with which all here can be built, by the rule of everything else, or fetches it. Sets
# `toolkit_options` to what tells Meson of it.
toolkit() {
  local fetched=build-tools/cuda-13.0 lists=(test/support/toolkit.txt) size='0.25 GB' found
  # Directory of cuda.h, ..., nvcc (4), libraries (5), what was passed over (6).
  mapfile -t found < <(sh lib/toolkit/find_toolkit 13000 "${CXX:-g++}")
  if [ ${#found[@]} -gt 1 ] && "${found[3]}" --version >/dev/null 2>&1; then
    [ -z "${found[5]}" ] || echo "passed over: ${found[5]}"
  else
    if [ "${CUGUEST_TOOLKIT_LIBRARIES:-0}" != 0 ] || [ -d "$fetched-libraries" ]; then
      fetched+=-libraries
      lists+=(test/support/toolkit_libraries.txt)
      size='1.5 GB'
    fi
    if [ ! -d "$fetched" ]; then
      echo "fetching: the CUDA Toolkit 13.0, $size, into $fetched/ (${found[0]})"
      fetch_toolkit "$fetched" "${lists[@]}"
    fi
    [ "${fetched%-libraries}" != "$fetched" ] || echo 'going on without cuBLAS, cuFFT, cuRAND, cuSOLVER, cuSPARSE and NCCL:' \
      'what needs them says skipped; CUGUEST_TOOLKIT_LIBRARIES=1 fetches them, 1.5 GB in all'
    found=("$PWD/$fetched/nvidia/cu13/include" '' '' "$PWD/$fetched/nvidia/cu13/bin/nvcc" "$PWD/$fetched/nvidia/cu13/lib")
  fi
  # Meson keeps this, so that a later command finds the same one.
  toolkit_options=(-Dtoolkit_include="${found[0]}")
  PATH=${found[3]%/*}:$PATH
  # NVRTC finds its other half so, and the simulated driver nvJitLink: not every installation is in ldconfig's list.
  [ -z "${found[4]}" ] || export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${found[4]}
}

# bootstrap NEED...: installs what needs() lists, and further lines like its; and what wanted() does, if
# it may and there is such a package. Sets `ccache` to what goes before a compiler that Meson did not choose
# itself, before which it puts none.
bootstrap() {
  local packages missing
  mapfile -t packages < <({ needs; printf '%s\n' "$@"; } | missing_packages)
  mapfile -t missing < <(wanted | missing_packages)
  [ ${#packages[@]} = 0 ] || require "${packages[@]}"
  [ ${#missing[@]} = 0 ] || apt_get "${missing[@]}" ||
    echo "going on without: ${missing[*]}$apt_said; what needs it says skipped" >&2

  if ! meson_is_new_enough; then  # Ubuntu 22.04 has 0.61.2
    [ -x build-tools/meson/bin/meson ] || fetch_meson
    PATH=$PWD/build-tools/meson/bin:$PATH
  fi

  toolkit

  ccache=()
  if command -v ccache >/dev/null; then
    ccache=(ccache)
    # What is compiled with a precompiled header it keeps if it may ignore that header's time.
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}
  fi
}

# build_in DIRECTORY TARGET... -- OPTION...: configures (again), then builds; everything, unless
# told. With as much debug information (-g1) as a backtrace needs, and eight sources of a target at a
# time: a sixth less to wait for. Without optimisation, as tests are compiled in any case, unless
# CUGUEST_TEST_OPTIMIZATION says with which: what is compiled once and runs for seconds. All that build in
# `build` say the same, or they compile it anew.
build_in() {
  local directory=$1 targets=() mode=()
  local common=(-Dbuildtype=debugoptimized -Doptimization="${CUGUEST_TEST_OPTIMIZATION:-0}" -Dcpp_args=-g1 -Dunity=on -Dunity_size=8 "${toolkit_options[@]}")
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
