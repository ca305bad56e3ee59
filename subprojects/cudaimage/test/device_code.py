#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds the readers against what real compilers write: every image is accepted, and none is damaged.

  device_code.py CHECKER nvcc [--full]   what nvcc makes of device_code.cu: relocatable or not, LTO,
                                         debug, line numbers, every way of compression, objects,
                                         archives and device links, every architecture that it knows
                                         (--full: each kind for each architecture by itself)
  device_code.py CHECKER packages        the cubins of the ptxas and the NVRTC of other versions,
                                         from Python packages, which pip fetches by name
  device_code.py CHECKER libraries       all device code in the toolkit's libraries and, where they
                                         are installed, PyTorch's and those of NVIDIA's packages

CHECKER is the build's test/device_code_test. What cannot be had is skipped by name. The exit
status is 77 if nothing could be tried.
"""

import argparse
import ctypes
import glob
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, 'device_code.cu')
PTX = os.path.join(HERE, 'device_code.ptx')
SKIPPED = 77

# The oldest, those between at which the format changed, and the newest of each name.
PTXAS_PACKAGES = [
    'nvidia-cuda-nvcc-cu11==11.8.89', 'nvidia-cuda-nvcc-cu12==12.0.140',
    'nvidia-cuda-nvcc-cu12==12.4.131', 'nvidia-cuda-nvcc-cu12==12.8.93', 'nvidia-cuda-nvcc-cu12',
    'nvidia-cuda-nvcc==13.0.88', 'nvidia-cuda-nvcc',
]
NVRTC_PACKAGES = [
    'nvidia-cuda-nvrtc-cu11==11.8.89', 'nvidia-cuda-nvrtc-cu12==12.0.140',
    'nvidia-cuda-nvrtc-cu12==12.4.127', 'nvidia-cuda-nvrtc-cu12', 'nvidia-cuda-nvrtc',
]


def say(text):
    print(text, flush=True)


def run(command, **more):
    """What the command said if it failed, else nothing."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', **more)
    return '' if done.returncode == 0 else done.stdout.strip() or f'exit status {done.returncode}'


def check(checker, files, seconds=0):
    """The exit status of the checker over all of these."""
    if not files:
        say('nothing could be made')
        return SKIPPED
    environment = dict(os.environ, CUDAIMAGE_TEST_DEVICE_CODE=':'.join(files),
                       CUDAIMAGE_TEST_DEVICE_CODE_SECONDS=str(seconds), BOOST_TEST_LOG_LEVEL='message',
                       BOOST_TEST_COLOR_OUTPUT='0')
    return subprocess.run([checker], env=environment, check=False).returncode


def pieces(text, prefix):
    """The architectures that a compiler's help names: "90a" of sm_90a."""
    found = set(re.findall(rf'\b{prefix}_(\d+[af]?)\b', text))
    return sorted(found, key=lambda name: (int(name.rstrip('af')), name))


class Nvcc:
    def __init__(self, path, folder):
        self.path = path
        self.folder = folder
        self.files = []
        text = subprocess.run([path, '--help'], capture_output=True, text=True, check=True).stdout
        self.real = pieces(text, 'sm')
        self.virtual = pieces(text, 'compute')
        self.lto = pieces(text, 'lto')

    def make(self, name, *arguments, source=SOURCE):
        output = os.path.join(self.folder, name)
        problem = run([self.path, '-std=c++17', *arguments, '-o', output, source])
        if problem:
            say(f'not made: {name}: {problem.splitlines()[0]}')
            return None
        self.files.append(output)
        return output

    def gencode(self, real=(), virtual=(), lto=()):
        of = [(name, f'sm_{name}') for name in real] + [(name, f'lto_{name}') for name in lto]
        of += [(name, f'compute_{name}') for name in virtual]
        return [f'-gencode=arch=compute_{name},code={code}' for name, code in of]


def nvcc_images(nvcc, full):
    few = [name for name in ('75', '120') if name in nvcc.real]
    some = nvcc.gencode(few, few[:1])
    # No image may have code for one architecture with and without what is special to it.
    for suffix, pattern in (('', r'\d+'), ('a', r'\d+a'), ('f', r'\d+f')):
        real = [name for name in nvcc.real if re.fullmatch(pattern, name)]
        lto = [name for name in nvcc.lto if re.fullmatch(pattern, name)]
        virtual = [name for name in nvcc.virtual if re.fullmatch(pattern, name)]
        if full or not suffix:
            nvcc.make(f'every{suffix}.fatbin', '-fatbin', '-rdc=true', *nvcc.gencode(real, virtual))
        if full:
            nvcc.make(f'whole{suffix}.fatbin', '-fatbin', *nvcc.gencode(real, virtual))
            nvcc.make(f'lto{suffix}.fatbin', '-fatbin', '-rdc=true', *nvcc.gencode(lto=lto))
    if not full:
        nvcc.make('lto.fatbin', '-fatbin', '-rdc=true', *nvcc.gencode(lto=few))
    nvcc.make('lto.ltoir', '-dlto', '-ltoir', f'-arch=sm_{few[-1]}')
    for mode in ('default', 'size', 'speed', 'balance', 'none'):
        nvcc.make(f'compressed_{mode}.fatbin', '-fatbin', f'--compress-mode={mode}', *some)
    for name in nvcc.real if full else few:
        arch = f'-arch=sm_{name}'
        nvcc.make(f'{name}.cubin', '-cubin', arch)
        nvcc.make(f'{name}_relocatable.cubin', '-cubin', '-rdc=true', arch)
        nvcc.make(f'{name}_debug.cubin', '-cubin', '-G', arch)
        nvcc.make(f'{name}_lines.cubin', '-cubin', '-lineinfo', '-rdc=true', arch)
        if full:
            nvcc.make(f'{name}_lto.fatbin', '-fatbin', '-dlto', '-rdc=true', arch)
            nvcc.make(f'{name}_debug_relocatable.cubin', '-cubin', '-G', '-rdc=true', arch)
            nvcc.make(f'{name}_slow.cubin', '-cubin', '-Xptxas=-O0', arch)
    for name in nvcc.virtual if full else few:
        nvcc.make(f'{name}.ptx', '-ptx', f'-arch=compute_{name}')
    host_images(nvcc, some)


def host_images(nvcc, gencode):
    """Objects, archives and device links of two sources."""
    other = os.path.join(nvcc.folder, 'other.cu')
    with open(other, 'w', encoding='utf-8') as file:
        file.write('__device__ float factor = 2;\n')
    whole = nvcc.make('whole.o', '-c', *gencode)
    first = nvcc.make('first.o', '-dc', '-Xcompiler=-fPIC', *gencode)
    second = nvcc.make('second.o', '-dc', '-Xcompiler=-fPIC', *gencode, source=other)
    if whole:
        nvcc.make('whole.a', '-lib', source=whole)
    if first and second:
        linked = os.path.join(nvcc.folder, 'linked')
        for suffix, arguments in (('.o', ['-dlink', *gencode]), ('.a', ['-lib']),
                                  ('.so', ['-shared', *gencode])):
            problem = run([nvcc.path, *arguments, '-Xcompiler=-fPIC', first, second, '-o',
                           linked + suffix])
            if problem:
                say(f'not made: linked{suffix}: {problem.splitlines()[0]}')
            else:
                nvcc.files.append(linked + suffix)
    # A device link holds no code of its own for a linker: what it has is in its section.
    nvcc.files = [file for file in nvcc.files if file != whole]


def fetch(package, folder):
    """The folder of the package's files, or nothing."""
    target = os.path.join(folder, re.sub(r'\W+', '_', package))
    os.makedirs(target)
    problem = run([sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps',
                   '--disable-pip-version-check', '--only-binary', ':all:', '--dest', target, package])
    wheels = glob.glob(os.path.join(target, '*.whl'))
    if problem or not wheels:
        say(f'skipped: {package}: {problem.splitlines()[-1] if problem else "no wheel"}')
        return None
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(target)
    os.remove(wheels[0])
    return target


def find(folder, name):
    found = glob.glob(os.path.join(folder, '**', name), recursive=True)
    return found[0] if found else None


def ptxas_images(package, folder):
    """The cubins that its ptxas makes of device_code.ptx."""
    target = fetch(package, folder)
    ptxas = find(target, 'ptxas') if target else None
    if ptxas is None:
        return []
    os.chmod(ptxas, 0o755)
    text = subprocess.run([ptxas, '--help'], capture_output=True, text=True, check=True).stdout
    with open(PTX, encoding='utf-8') as file:
        ptx = file.read()
    files = []
    for name in pieces(text, 'sm'):
        source = os.path.join(target, f'{name}.ptx')
        for kind, options in (('plain', []), ('relocatable', ['-c']), ('debug', ['-g', '-O0']),
                              ('lines', ['-lineinfo', '-c'])):
            output = os.path.join(target, f'{name}_{kind}.cubin')
            command = [ptxas, f'-arch=sm_{name}', *options, source, '-o', output]
            if compiles(ptx, name, source, command):
                files.append(output)
    say(f'{package}: {len(files)} cubins')
    return files


def compiles(ptx, name, source, command):
    """Whether the command takes it as PTX of any version, the oldest that knows sm_NAME."""
    for version in ('7.0', '7.8', '8.6', '8.8', '9.0', '9.1', '9.2', '9.3', '9.4', '9.5'):
        with open(source, 'w', encoding='utf-8') as file:
            file.write(ptx.replace('.version 7.0', f'.version {version}')
                       .replace('sm_70', f'sm_{name}'))
        if not run(command):
            return True
    return False


NVRTC_SOURCE = b'''
extern __shared__ float room[];
__constant__ float table[64];
__device__ int counter = 5;
template <typename T> __device__ __noinline__ T Twice(T x) { return x + x; }
extern "C" __global__ void __launch_bounds__(128) mix(float* values) {
  room[threadIdx.x] = Twice(values[threadIdx.x]) * table[threadIdx.x & 63];
  __syncthreads();
  values[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x] + atomicAdd(&counter, 1);
}
'''


def nvrtc_image(nvrtc, options, output):
    """Whether NVRTC made that cubin."""
    program = ctypes.c_void_p()
    size = ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), NVRTC_SOURCE, b'mix.cu', 0, None, None)
    texts = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    made = nvrtc.nvrtcCompileProgram(program, len(options), texts) == 0
    made = made and nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0 and size.value > 0
    if made:
        bytes_ = ctypes.create_string_buffer(size.value)
        made = nvrtc.nvrtcGetCUBIN(program, bytes_) == 0
        with open(output, 'wb') as file:
            file.write(bytes_.raw)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return made


def nvrtc_images(package, folder):
    target = fetch(package, folder)
    library = find(target, 'libnvrtc.so.*') if target else None
    if library is None:
        return []
    builtins = find(target, 'libnvrtc-builtins.so.*')
    if builtins:
        ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(library)
    count = ctypes.c_int()
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    architectures = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(architectures)
    files = []
    for name in architectures:
        for kind, options in (('plain', []), ('relocatable', ['-rdc=true']), ('debug', ['-G']),
                              ('lines', ['-lineinfo'])):
            output = os.path.join(target, f'{name}_{kind}.cubin')
            if nvrtc_image(nvrtc, [f'-arch=sm_{name}', *options], output):
                files.append(output)
    say(f'{package}: {len(files)} cubins')
    return files


def library_folders(nvcc):
    folders = [os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), 'lib64')]
    for place in sys.path:
        folders += glob.glob(os.path.join(place, 'torch', 'lib'))
        folders += glob.glob(os.path.join(place, 'nvidia', '*', 'lib'))
    return [folder for folder in folders if os.path.isdir(folder)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('checker')
    parser.add_argument('what', choices=['nvcc', 'packages', 'libraries'])
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--nvcc', default=shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc')
    arguments = parser.parse_args()
    checker = os.path.abspath(arguments.checker)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.what == 'libraries':
            return check(checker, library_folders(arguments.nvcc))
        if arguments.what == 'packages':
            files = []
            for package in PTXAS_PACKAGES:
                files += ptxas_images(package, folder)
            for package in NVRTC_PACKAGES:  # each in a process of its own: they share symbols
                with multiprocessing.get_context('spawn').Pool(1) as pool:
                    files += pool.apply(nvrtc_images, (package, folder))
            return check(checker, files)
        if not os.path.exists(arguments.nvcc):
            say('skipped: no nvcc')
            return SKIPPED
        nvcc = Nvcc(arguments.nvcc, folder)
        nvcc_images(nvcc, arguments.full)
        return check(checker, nvcc.files)


if __name__ == '__main__':
    sys.exit(main())
