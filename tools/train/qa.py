#!/usr/bin/env python3
"""Turn the pages of data.py into facts and conversations.

facts.json: {"commands": [{name, sentence, base, verb, weight}], "options": [{name, option, answer, weight}]}.
conversations() yields lists of (role, text); it is endless and its seed fixes it.
"""

import argparse
import json
import os
import random
import re

import facts as F

TIER2 = set(
    """coreutils util-linux util-linux-extra mount bsdutils bsdextrautils findutils grep sed gawk mawk tar gzip bzip2 xz-utils
zstd procps psmisc git-man systemd systemd-container apt dpkg dpkg-dev openssh-client openssh-server curl wget rsync gcc-12 make
binutils-common bash dash login passwd e2fsprogs fdisk diffutils less file man-db hostname iproute2 iputils-ping net-tools
sudo cron vim nano tmux screen htop lsof strace gdb patch bc dc jq tree zip unzip openssl gpg ncurses-bin udev kmod pciutils
usbutils debianutils adduser libc-bin bind9-dnsutils bind9-host tcpdump netcat-openbsd cpio attr acl at rename moreutils
bsdgames cowsay figlet fortune-mod time parted dosfstools lvm2 smartmontools ethtool nftables iptables sysstat valgrind""".split()
)
# The packages of TIER2 whose commands come first.
CORE = """coreutils procps grep findutils tar gzip sed git-man openssh-client passwd login apt dpkg util-linux mount psmisc
diffutils systemd kmod bsdutils bsdextrautils binutils-common man-db bash hostname iproute2 e2fsprogs cron less file xz-utils
bzip2 zstd sudo adduser debianutils udev pciutils usbutils net-tools dpkg-dev gpg openssl libc-bin bind9-dnsutils""".split()
SECTION5 = """fstab passwd group shadow hosts resolv.conf crontab sources.list sudoers ssh_config sshd_config hostname shells
nsswitch.conf locale.gen systemd.service systemd.timer systemd.unit logrotate.conf apt.conf apt_preferences deb-control proc
sysctl.conf gitignore gitattributes services protocols issue motd login.defs crypttab os-release machine-id""".split()
SKIP = re.compile(
    r"[^a-zA-Z0-9_.+-]|^(sg_|ppm|pgm|pnm|pbm|xfs_|btrfs-|docker-|podman-|buildah-|nbd|lv|vg|pv.|tipc|devlink|rdma-|dcb|"
    r"vdpa|xtables|ip-(?!link|route|address|netns)|gp-|cg_|tc-|arptables|ebtables|e2scrub|ssh-(sk|argv|keysign)|rtacct|"
    r"lnstat|wargames|countmail|phantasia|cfscores|snscore|pcp|nfnl|tunnel_key|sudo_|git-sh-|git-diagnose|git-mk|"
    r"mkfs.(bfs|cramfs|minix)|fsck.(cramfs|minix)|systemd-(fsckd|hwdb|pstore|repart|rfkill|sysext|initctl|localed|importd|dissect|"
    r"creds|escape|umount|mount|binfmt|id128|path|delta)|dpkg-(gen|dist|scan|vendor|trigger|real|shlib|build|name))"
)
# Descriptions that make no good sentence, and corners of packages that nobody asks about.
BAD_WHAT = re.compile(
    r"(?i) - |^(?!apply|reapply)[a-z]+ly [a-z]+ |^(satisfy|pipe|gather|soak|fine tune|animate|re-run|shall|begin|override|name service|"
    r"preallocate) |manual page for|^cleanup|number lines|columnate"
)
TRAFFIC = re.compile(r"(?i)\btc\b|qdisc|polic|action|filter|traffic|schedul|queue|detection")
PLUMBING = re.compile(
    r"internal|helper|low-level|remote-|--|fast-|pack|index|hook|mail|diff-|merge-|credential|http|check-|-tree|ls-remote|"
    r"rev-|show-|symbolic|update-|verify|commit-|hash-|each|fsck-|upload|interpret|get-tar|stripspace|imap|request-|quilt|fmt|"
    r"patch-id|git-(var|column|stage|init-db|replace|version|whatchanged|rerere|daemon|annotate|cat-file|instaweb|name-rev)"
)
BAD_OPTION = re.compile(
    r"(?i)^or |ignored|i\.e$|e\.g$|see below|than n,|true if|if level is|keywords are|^shortcut for|^quiet mode|^4\.|"
    r"option is|display (this )?help|help (text|message)"
)


def third(verb):
    if verb in ("do", "go"):
        return verb + "es"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    if re.search(r"(s|x|z|ch|sh)$", verb):
        return verb + ("zes" if verb.endswith("quiz") else "es")
    return verb + "s"


def verb_phrase(what):
    """(base, third person) of a description that opens with a verb, else None."""
    words = what.split()
    if not words:
        return None
    first = words[0].rstrip(",").lower()
    verbs = set(F.VERBS)
    base = first
    if first not in verbs:
        cands = sorted(v for v in verbs if third(v) == first)
        if not cands:
            return None
        base = cands[0]
    out_b, out_t = [base + words[0][len(first) :]], [third(base) + words[0][len(first) :]]
    joined = words[0].endswith(",")
    for i, word in enumerate(words[1:], 1):
        bare = word.rstrip(",")
        prev = words[i - 1]
        near = prev in ("and", "or") or prev.endswith(",")
        if near and (bare in F.LATER or (bare in verbs and i <= 3 and (joined or i == 2))):
            out_b.append(word)
            out_t.append(third(bare) + word[len(bare) :])
        else:
            out_b.append(word)
            out_t.append(word)
    return " ".join(out_b), " ".join(out_t)


def article(what):
    first = what.split()[0]
    if first.lower() in ("a", "an", "the", "all", "some", "various"):
        return what[0].lower() + what[1:] if first.lower() in ("a", "an", "the") else what
    head = re.split(r" (?:for|of|to|that|which|in|on|with|from|and|by|used|\(|-)\b|[,;(:]", what)[0].split()
    plural = (
        head
        and re.search(r"[^s]s$", head[-1])
        and head[-1].lower() not in ("status", "bus", "dns", "access", "process")
    )
    if first.isupper() or first in ("GNU", "OpenSSH", "Linux", "Debian", "systemd", "Git", "OpenSSL"):
        return ("" if plural else "the ") + what
    if plural:
        return what
    if first[0].isupper():
        if first[1:].islower():
            what = what[0].lower() + what[1:]
        else:
            return "the " + what
    return (
        "an " if what[0].lower() in "aeiou" and not what.lower().startswith(("uni", "use", "user")) else "a "
    ) + what


def tidy(what):
    what = re.sub(r"\s*\((?:deprecated|experimental)[^)]*\)", "", what, flags=re.I)
    what = re.sub(r"^(?:tool|utility|program|command) to ", "", what, flags=re.I)
    what = what.strip().rstrip(".;:, ")
    what = what.replace(" / ", " or ")
    what = re.sub(r"\bvia the\b", "through the", what)
    return what


def sentence(name, what):
    vp = verb_phrase(what)
    if vp:
        return "%s %s." % (name, vp[1]), vp[0], vp[1]
    noun = article(what)
    return "%s is %s." % (name, noun), "", noun


def load_pages(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def tier_of(name, page, rank):
    if name in rank:
        return 0
    return 1 if page["package"] in TIER2 or page["section"] == "5" else 2


def wanted(name, page, what, rank):
    """Whether the fact is one for the model: a sentence of fair length about a command that people meet."""
    tier, package = tier_of(name, page, rank), page["package"]
    if SKIP.search(name) or len(name) > 22 or name != name.lower() or not 8 <= len(what) <= 75:
        return False
    if BAD_WHAT.search(what) or re.search(r"[^\x20-\x7e]", what) or page["section"] == "5" and name in rank:
        return False
    if tier == 2 and (page["section"] == "8" or "-" in name):
        return False
    if package == "openssl" and name != "openssl" or package == "iproute2" and TRAFFIC.search(what):
        return False
    return tier == 0 or not (name.startswith("git-") and PLUMBING.search(name + what))


def build_commands(pages, limit):
    rank = {n: i for i, n in enumerate(F.COMMON)}
    found = {}
    for p in pages:
        if p["section"] not in ("1", "6", "8", "5") or not p["whatis"]:
            continue
        if p["section"] == "5" and p["name"] not in SECTION5:
            continue
        names = p["names"] if p["section"] != "5" else [p["name"]]
        for name in names:
            what = tidy(p["whatis"])
            if name in found or not wanted(name, p, what, rank):
                continue
            text, base, phrase = sentence(name, what)
            found[name] = {
                "name": name,
                "sentence": text,
                "base": base,
                "phrase": phrase,
                "tier": tier_of(name, p, rank),
                "package": p["package"],
                "section": p["section"],
            }
    for name in F.DROPPED:
        found.pop(name, None)
    for name, text in F.OVERRIDE.items():
        body = text[len(name) + 1 :].rstrip(".").split(";")[0]
        old = found.get(name, {"package": "", "section": "1"})
        verb = None if body.startswith("is ") else verb_phrase(body)
        found[name] = dict(
            old,
            name=name,
            sentence=text,
            base=verb[0] if verb else "",
            phrase=body[3:] if body.startswith("is ") else body,
            tier=0 if name in rank else old.get("tier", 1),
        )
    core = {p: i for i, p in enumerate(CORE)}

    def order(c):
        place = -1 if c["section"] == "5" else core.get(c["package"], 99)
        return c["tier"], rank.get(c["name"], 9999), place, len(c["name"]), c["name"]

    items = sorted(found.values(), key=order)[:limit]
    owner = {}
    for c in items:
        r = rank.get(c["name"], 9999)
        c["weight"] = 5.0 if r < 90 else 3.0 if r < 9999 else 1.5 if c["tier"] == 1 else 1.0
        c["unique"] = owner.setdefault(c["phrase"], c["name"]) == c["name"]
    return items


OPT = re.compile(
    r"^ {2,12}(-[A-Za-z0-9](?:[ =]?\S+)?(?:, *-[A-Za-z])?(?:, *--?[a-z][\w-]*(?:\[?=\S+)?)?|"
    r"--[a-z][\w-]+(?:\[?=\S+)?)(?:  +(\S.*))?$"
)


def options_of(text):
    lines = text.split("\n")
    for i, line in enumerate(lines):
        m = OPT.match(line)
        if not m:
            continue
        indent = len(line) - len(line.lstrip())
        desc = [m.group(2)] if m.group(2) else []
        for more in lines[i + 1 : i + 7]:
            if not more.strip() or len(more) - len(more.lstrip()) <= indent:
                break
            desc.append(more.strip())
        flags = re.findall(r"(?:^|, *)(--?[A-Za-z0-9][\w-]*)", m.group(1))
        what = " ".join(" ".join(desc).split())
        what = re.split(r"(?<=[a-z)])[.;:](?: |$)", what)[0].strip(" .;:")
        if flags and 8 <= len(what) <= 80 and not re.search(r"[^\x20-\x7e]", what):
            yield flags, what


def build_options(pages, commands, count, each):
    by_name = {}
    for p in pages:
        if p["section"] in ("1", "8"):
            for n in [p["name"]] + p["names"][:1]:
                by_name.setdefault(n, p)
    names = [c["name"] for c in commands if c["tier"] == 0][:count]
    out = []
    for name in names:
        page = by_name.get(name)
        if not page:
            continue
        seen, mine = set(), []
        for flags, what in options_of(page["text"]):
            flag = flags[0]
            if (
                flag in seen
                or not re.match(r"^-[A-Za-z0-9]$|^--[a-z-]{3,14}$", flag)
                or flag in ("--help", "--version", "-V")
            ):
                continue
            seen.add(flag)
            long = next((f for f in flags[1:] if f.startswith("--")), "")
            what = what.split(" (")[0] if what.count("(") != what.count(")") else what
            what = what + " a dot" if what.endswith("starting with") else what
            if len(what) < 10 or BAD_OPTION.search(what):
                continue
            rank = (0 if name + " " + flag in F.FAMOUS else 1) * 4 + (
                0 if len(flag) == 2 and long else 1 if len(flag) == 2 else 2
            )
            if not re.match(r"[A-Z]{2}|SI|UTC", what):
                what = what[0].lower() + what[1:]
            answer = "%s %s%s: %s." % (name, flag, " (%s)" % long if long else "", what)
            mine.append((rank, len(mine), {"name": name, "option": flag, "answer": answer}))
        mine.sort(key=lambda m: m[:2])
        mine = [m for m in mine if m[2]["option"] not in {o for n, o in F.OPTION_OVERRIDE if n == name}]
        mine = [
            (0, 0, {"name": name, "option": o, "answer": "%s %s%s: %s." % (name, o, x and " (%s)" % x, w)})
            for (n, o), (x, w) in F.OPTION_OVERRIDE.items()
            if n == name
        ] + mine
        famous = sum(m[0] < 4 for m in mine)
        for rank, _, o in [m for m in mine if m[0] < 6][: max(each, famous)]:
            o["weight"] = 4.0 if rank < 4 else 2.0 if name in F.COMMON[:60] else 1.0
            out.append(o)
    return out


def pick(rng, items):
    return rng.choices(items, [i["weight"] for i in items])[0]


SYL = """ba be bo ca co da de di do fa fi fo ga go ha ho ja ju ka ki ko la le lo ma mi mo na no pa pi po ra re ri ro sa
so ta te ti to va vi wa xa yo za zo""".split()
WORDS = """apple house river stone window flower table music paper yellow dragon castle winter summer garden doctor engine
pocket silver planet monkey tiger rabbit cheese butter coffee orange banana bridge candle cotton dinner forest guitar hammer
island jacket kitten ladder market needle office pencil rocket school ticket valley wallet blanket chicken dolphin""".split()


def unknown_name(rng, taken, strange):
    if rng.random() < 0.25:
        return rng.choice(strange)
    while True:
        k = rng.random()
        if k < 0.4:
            name = "".join(rng.choice(SYL) for _ in range(rng.randint(2, 4)))
        elif k < 0.6:
            name = rng.choice(WORDS) + rng.choice(["", "", "ctl", "d", "-tool", "fs", "2", "cat"])
        elif k < 0.8:
            name = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 8)))
        else:
            a, b = rng.sample(strange, 2)
            name = a[: max(2, len(a) // 2)] + b[len(b) // 2 :]
        if name not in taken:
            return name


def spoken(rng, name):
    """git-commit is asked for as "git commit" half of the time."""
    return name.replace("-", " ", 1) if name.startswith("git-") and rng.random() < 0.5 else name


def wording(rng, forms, clauses):
    """A question form: one of the plain ones, or an opener with a clause."""
    if rng.random() < 0.6:
        return rng.choice(forms)
    return rng.choice(F.OPENERS) + " " + rng.choice(clauses) + rng.choice(["?", ".", "", ", please."])


def ask(rng, facts, taken, strange):
    """One question and its answer."""
    k = rng.random()
    if k < 0.38:
        c = pick(rng, facts["commands"])
        return wording(rng, F.FORWARD, F.FORWARD_CLAUSES).format(c=spoken(rng, c["name"])), c["sentence"]
    if k < 0.60:
        c = pick(rng, facts["commands"])
        while not c["unique"]:
            c = pick(rng, facts["commands"])
        if c["base"]:
            return wording(rng, F.REVERSE_VERB, F.REVERSE_CLAUSES).format(d=c["phrase"], b=c["base"]), c["sentence"]
        return rng.choice(F.REVERSE_NOUN).format(d=c["phrase"]), c["sentence"]
    if k < 0.65:
        name, example, does = rng.choice(F.EXAMPLES)
        return wording(rng, F.EXAMPLE_FORMS, F.EXAMPLE_CLAUSES).format(c=name), F.EXAMPLE_ANSWER.format(
            e=example, d=does
        )
    if k < 0.83:
        o = pick(rng, facts["options"])
        return wording(rng, F.OPTION, F.OPTION_CLAUSES).format(c=o["name"], o=o["option"]), o["answer"]
    if k < 0.90:
        asks, answer = rng.choice(F.TASKS)
        return wording(rng, F.TASK_FORMS, F.TASK_CLAUSES).format(t=rng.choice(asks)), answer
    if k < 0.96:
        name = unknown_name(rng, taken, strange)
        return wording(rng, F.FORWARD, F.FORWARD_CLAUSES).format(c=name), F.UNKNOWN.format(c=name)
    if k < 0.98:
        return rng.choice(F.OFFTOPIC_Q), F.OFFTOPIC
    asks, answer = rng.choice(F.SMALL_TALK)
    return rng.choice(asks), answer


def vary(rng, q):
    k = rng.random()
    if k < 0.08:
        return q.rstrip("?.")
    if k < 0.14:
        return q[0].lower() + q[1:]
    if k < 0.17:
        return q + " "
    if k < 0.20:
        return "Please: " + q
    return q


def conversations(facts, seed):
    rng = random.Random(seed)
    taken = set(facts["all_names"])
    known = {c["name"] for c in facts["commands"]}
    strange = [n for n in facts["all_names"] if n not in known and re.match(r"[a-z][a-z0-9-]{1,16}$", n)]
    while True:
        chat = []
        if rng.random() < 0.12:
            chat.append(("system", rng.choice(F.SYSTEM)))
        for _ in range(rng.choices([1, 2, 3, 4], [0.62, 0.2, 0.1, 0.08])[0]):
            q, a = ask(rng, facts, taken, strange)
            chat += [("user", vary(rng, q)), ("assistant", a)]
        yield chat


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--data", required=True, help="folder with pages.jsonl; facts.json is written there")
    ap.add_argument("--commands", type=int, default=405)
    ap.add_argument("--option-commands", type=int, default=75)
    ap.add_argument("--options-each", type=int, default=5)
    args = ap.parse_args()
    pages = load_pages(os.path.join(args.data, "pages.jsonl"))
    commands = build_commands(pages, args.commands)
    options = build_options(pages, commands, args.option_commands, args.options_each)
    names = sorted({n for p in pages for n in p["names"] + [p["name"]]} | {c["name"] for c in commands})
    with open(os.path.join(args.data, "facts.json"), "w") as f:
        json.dump({"commands": commands, "options": options, "all_names": names}, f, indent=1)
    print("commands %d options %d names %d" % (len(commands), len(options), len(names)))


if __name__ == "__main__":
    main()
