#!/usr/bin/env python3
"""Fetch Debian packages and turn their manual pages and guides into plain text.

Output in --out: pages.jsonl (name, section, package, names, whatis, text) and packages.tsv (name, version).
Nothing is installed: packages are downloaded by apt-get and unpacked beside.
"""

import argparse
import gzip
import html
import json
import os
import re
import subprocess
import sys

KEEP = (
    "./usr/share/man/man[15678]*",
    "./usr/share/doc/debian-handbook*",
    "./usr/share/doc/maint-guide*",
    "./usr/share/doc/debian-policy*",
    "./usr/share/doc/debian-faq*",
)


def read_list(path):
    with open(path) as f:
        return sorted({w for line in f if not line.startswith("#") for w in line.split()})


def available(names):
    out = subprocess.run(["apt-cache", "policy"] + names, capture_output=True, text=True).stdout
    found = set()
    for block in re.split(r"\n(?=\S)", out):
        m = re.match(r"(\S+):\n.*?Candidate: (\S+)", block, re.S)
        if m and m.group(2) != "(none)":
            found.add(m.group(1))
    return [n for n in names if n in found]


def download(names, folder):
    os.makedirs(folder, exist_ok=True)
    have = {f.split("_")[0] for f in os.listdir(folder) if f.endswith(".deb")}
    want = [n for n in available(names) if n not in have]
    if want:
        subprocess.run(["apt-get", "download"] + want, cwd=folder, check=True)


def unpack(deb, tree):
    os.makedirs(tree, exist_ok=True)
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", tree, "--wildcards", *KEEP], input=tar, stderr=subprocess.DEVNULL)


def field(deb, name):
    return subprocess.run(["dpkg-deb", "-f", deb, name], capture_output=True, text=True).stdout.strip()


def render(raw):
    p = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=100"], input=raw, capture_output=True)
    text = re.sub(".\b", "", p.stdout.decode("utf-8", "replace"))
    for a, b in (
        ("\u2010", "-"),
        ("\u2212", "-"),
        ("\u2011", "-"),
        ("\u2018", "'"),
        ("\u2019", "'"),
        ("\u00a0", " "),
        ("\u201c", '"'),
        ("\u201d", '"'),
        ("\u2013", "-"),
        ("\u2014", "-"),
        ("\u00b7", "*"),
        ("\u2022", "*"),
    ):
        text = text.replace(a, b)
    return text


def whatis(text):
    m = re.search(r"^NAME\n(.*?)(?=^\S)", text, re.S | re.M)
    if not m:
        return [], ""
    line = " ".join(m.group(1).split())
    m = re.match(r"(\S+(?:, *\S+)*) +-+ +(.*)", line)
    if not m:
        return [], ""
    return [n.strip() for n in m.group(1).split(",")], m.group(2).strip()


def strip_html(raw):
    raw = re.sub(r"(?is)<(script|style|head)\b.*?</\1>", " ", raw)
    raw = re.sub(r"(?i)</?(p|div|h\d|li|tr|pre|br|dt|dd)\b[^>]*>", "\n", raw)
    text = html.unescape(re.sub(r"<[^>]+>", "", raw))
    lines = [" ".join(x.split()) for x in text.split("\n")]
    return "\n".join(x for x in lines if len(x) > 40)


def guides(tree, package):
    for folder, _, files in os.walk(os.path.join(tree, "usr/share/doc")):
        if package == "debian-handbook" and "/en-US" not in folder:
            continue
        for f in sorted(files):
            if re.search(r"\.html(\.gz)?$", f) and not re.search(r"\.(de|fr|ja|ru|it|zh|es|ca|pl)[-\w]*\.html", f):
                path = os.path.join(folder, f)
                opener = gzip.open if f.endswith(".gz") else open
                try:
                    text = strip_html(opener(path, "rt", errors="replace").read())
                except OSError:
                    continue
                if len(text) > 1000:
                    yield {"name": f, "section": "doc", "package": package, "names": [], "whatis": "", "text": text}


def pages(tree, package):
    for sec in "15678":
        folder = os.path.join(tree, "usr/share/man/man" + sec)
        for f in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            path = os.path.join(folder, f)
            if os.path.islink(path) or not f.endswith(".gz"):
                continue
            raw = gzip.open(path).read()
            if raw[:200].lstrip().startswith(b".so "):
                continue
            text = render(raw)
            names, what = whatis(text)
            if len(text) > 300:
                yield {
                    "name": re.sub(r"\.\d\w*\.gz$", "", f),
                    "section": sec,
                    "package": package,
                    "names": names,
                    "whatis": what,
                    "text": text,
                }


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--packages", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "packages.txt"))
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    debs = os.path.join(args.out, "debs")
    download(read_list(args.packages), debs)
    count = 0
    with (
        open(os.path.join(args.out, "pages.jsonl"), "w") as out,
        open(os.path.join(args.out, "packages.tsv"), "w") as tsv,
    ):
        for f in sorted(os.listdir(debs)):
            if not f.endswith(".deb"):
                continue
            deb = os.path.join(debs, f)
            package, tree = field(deb, "Package"), os.path.join(args.out, "tree", f[:-4])
            tsv.write("%s\t%s\n" % (package, field(deb, "Version")))
            unpack(deb, tree)
            for page in list(pages(tree, package)) + list(guides(tree, package)):
                out.write(json.dumps(page) + "\n")
                count += 1
    print("pages: %d" % count, file=sys.stderr)


if __name__ == "__main__":
    main()
