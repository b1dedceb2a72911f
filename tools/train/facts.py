"""Hand-written part of the questions and answers: wording, common tasks, small talk."""

# Commands asked about most; the order is that of commonness.
COMMON = """ls cd cp mv rm mkdir rmdir cat touch echo pwd grep find sed awk tar gzip gunzip ssh scp rsync curl wget git
apt apt-get dpkg systemctl journalctl ps top kill df du free mount umount chmod chown ln head tail less more sort uniq wc cut tr
tee xargs diff patch man which whoami id who w uptime uname hostname date cal sleep sudo su passwd useradd usermod groupadd
crontab bash sh make gcc ld ar nm objdump strip gdb strace vim nano tmux screen htop lsof ip ping ss netstat ifconfig iptables nft
nmap tcpdump dig host nc traceroute lsblk fdisk mkfs fsck dd sync stat file basename dirname realpath readlink env printf test
expr seq yes true false nice nohup timeout time watch kill pkill pgrep killall dmesg lspci lsusb modprobe lsmod sysctl shutdown
reboot bzip2 xz zstd zip unzip cpio md5sum sha256sum base64 od hexdump xxd strings split join paste comm fold fmt nl tac rev shuf
truncate mktemp chgrp chroot openssl gpg ssh-keygen ssh-copy-id ssh-agent sftp jq tree bc dc perl python3 cron at logrotate
apt-cache apt-mark dpkg-query dpkg-reconfigure update-alternatives adduser deluser groups last lastlog vmstat iostat sar
column look logger locale iconv gettext m4 bison flex cmake ninja autoconf automake ldd ldconfig blkid mkswap swapon
losetup parted e2fsck resize2fs tune2fs hdparm smartctl ethtool hostnamectl timedatectl localectl loginctl
systemd-analyze udevadm swapoff lscpu nproc arch tty stty reset clear tput git-commit git-clone git-push git-pull git-log
git-status git-branch git-checkout git-merge git-rebase git-diff git-add git-init git-stash git-tag git-reset git-show
git-fetch git-blame git-bisect git-grep sqlite3 psql docker podman nginx apropos whatis
git-cherry-pick git-rm git-mv git-config git-remote git-switch git-restore git-revert git-submodule git-worktree git-format-patch
userdel groupdel chage sha512sum whereis findmnt rename readelf visudo ssh-add setfacl getfacl pstree fuser""".split()

# Sentences written by hand where the NAME line alone reads badly.
OVERRIDE = {
    "git-cherry-pick": "git-cherry-pick applies the changes introduced by some existing commits.",
    "git-rm": "git-rm removes files from the working tree.",
    "git-format-patch": "git-format-patch prepares patches for e-mail submission.",
    "cd": "cd changes the working directory.",
    "ls": "ls lists directory contents.",
    "awk": "awk scans text for patterns and processes it.",
    "gawk": "gawk is the GNU version of awk; it scans and processes text patterns.",
    "tar": "tar is an archiving utility; it packs files into an archive and unpacks them.",
    "less": "less shows a text file page by page.",
    "more": "more shows a text file page by page; less is its better successor.",
    "git": "git is a distributed version control system.",
    "apt": "apt installs, upgrades and removes packages.",
    "apt-get": "apt-get installs, upgrades and removes packages.",
    "dpkg": "dpkg is the package manager for Debian.",
    "ssh": "ssh logs in to a remote machine over an encrypted connection.",
    "scp": "scp copies files between machines over SSH.",
    "sftp": "sftp transfers files over SSH.",
    "curl": "curl transfers a URL.",
    "wget": "wget downloads files from the network.",
    "rsync": "rsync copies files fast, locally or to a remote machine.",
    "grep": "grep prints lines that match patterns.",
    "sed": "sed is a stream editor for filtering and transforming text.",
    "find": "find searches for files in a directory tree.",
    "ps": "ps reports a snapshot of the current processes.",
    "top": "top displays the running processes and their load.",
    "htop": "htop is an interactive process viewer.",
    "df": "df reports file system disk space usage.",
    "du": "du estimates file space usage.",
    "free": "free displays the amount of free and used memory.",
    "cat": "cat concatenates files and prints them on the standard output.",
    "gcc": "gcc is the GNU C and C++ compiler.",
    "make": "make builds programs by the rules in a makefile.",
    "ld": "ld is the GNU linker.",
    "bash": "bash is the GNU shell; it runs commands and scripts.",
    "sh": "sh is the standard command interpreter (shell).",
    "dash": "dash is a small and fast command interpreter (shell).",
    "vim": "vim is a text editor, an improved version of vi.",
    "nano": "nano is a small and friendly text editor.",
    "man": "man shows the manual page of a command.",
    "systemctl": "systemctl controls the systemd system and service manager.",
    "journalctl": "journalctl prints log entries from the systemd journal.",
    "ip": "ip shows and changes network addresses, routes and devices.",
    "ss": "ss shows the network sockets.",
    "netstat": "netstat prints network connections, routing tables and interface statistics.",
    "ping": "ping sends echo requests to a network host to see whether it answers.",
    "dig": "dig looks up names in the DNS.",
    "host": "host looks up a name in the DNS.",
    "nc": "nc reads and writes data over TCP and UDP connections.",
    "tmux": "tmux is a terminal multiplexer.",
    "screen": "screen is a terminal multiplexer.",
    "sudo": "sudo executes a command as another user, usually root.",
    "su": "su runs a shell or a command as another user.",
    "chmod": "chmod changes the permissions of files.",
    "chown": "chown changes the owner and group of files.",
    "ln": "ln makes links between files.",
    "dd": "dd converts and copies a file.",
    "gzip": "gzip compresses files.",
    "gunzip": "gunzip expands files that gzip compressed.",
    "bzip2": "bzip2 compresses files with the Burrows-Wheeler method.",
    "xz": "xz compresses or decompresses .xz and .lzma files.",
    "zstd": "zstd compresses or decompresses .zst files.",
    "zip": "zip packs and compresses files into an archive.",
    "unzip": "unzip extracts files from a ZIP archive.",
    "gdb": "gdb is the GNU debugger.",
    "strace": "strace traces system calls and signals.",
    "ltrace": "ltrace traces library calls.",
    "lsof": "lsof lists open files.",
    "jq": "jq is a command-line JSON processor.",
    "tree": "tree lists the contents of directories in a tree-like format.",
    "bc": "bc is an arbitrary precision calculator.",
    "dc": "dc is an arbitrary precision calculator in reverse Polish notation.",
    "nmap": "nmap is a network exploration tool and port scanner.",
    "tcpdump": "tcpdump dumps the traffic on a network.",
    "iptables": "iptables sets up IPv4 packet filtering and NAT.",
    "nft": "nft sets up packet filtering with nftables.",
    "perl": "perl is the Perl language interpreter.",
    "python3": "python3 is the Python language interpreter.",
    "cron": "cron is a daemon that runs scheduled commands.",
    "crontab": "crontab edits a user's table of scheduled commands.",
    "at": "at runs commands once at a later time.",
    "xargs": "xargs builds and executes command lines from standard input.",
    "openssl": "openssl is the OpenSSL command line program.",
    "gpg": "gpg is the OpenPGP encryption and signing tool.",
    "docker": "docker runs and manages containers.",
    "podman": "podman runs and manages containers and pods.",
    "file": "file determines the type of a file.",
    "kill": "kill sends a signal to a process.",
    "which": "which locates a command.",
    "who": "who shows who is logged on.",
    "w": "w shows who is logged on and what they are doing.",
    "uname": "uname prints system information.",
    "head": "head outputs the first part of files.",
    "tail": "tail outputs the last part of files.",
    "cowsay": "cowsay draws a cow that speaks a text.",
    "sl": "sl is an animated steam train for people who mistype ls.",
    "psql": "psql is the PostgreSQL interactive terminal.",
    "sqlite3": "sqlite3 is a command line interface for SQLite databases.",
    "nginx": "nginx is a web server, reverse proxy and mail proxy.",
    "rename": "rename renames many files at once.",
    "time": "time runs a command and reports the time it took.",
    "clear": "clear clears the terminal screen.",
    "passwd": "passwd changes a user's password.",
    "mv": "mv moves (renames) files.",
    "touch": "touch changes file timestamps and creates empty files.",
    "pwd": "pwd prints the name of the working directory.",
    "uniq": "uniq reports or omits repeated lines.",
    "sleep": "sleep waits for a given time.",
    "nl": "nl numbers the lines of files.",
    "column": "column prints its input in columns.",
    "base64": "base64 encodes or decodes base64 data.",
    "test": "test checks file types and compares values.",
    "pgrep": "pgrep finds processes by name and other attributes.",
    "pkill": "pkill signals processes found by name and other attributes.",
    "truncate": "truncate shrinks or extends a file to the specified size.",
    "tput": "tput initializes a terminal or queries the terminfo database.",
    "reset": "reset resets the terminal to a sane state.",
    "dpkg-reconfigure": "dpkg-reconfigure reconfigures an already installed package.",
    "cmake": "cmake generates build files for a project.",
    "automake": "automake generates Makefile.in files.",
    "blkid": "blkid locates and prints block device attributes.",
    "swapon": "swapon enables devices and files for swapping.",
    "swapoff": "swapoff disables devices and files for swapping.",
    "hdparm": "hdparm gets and sets SATA and IDE device parameters.",
    "smartctl": "smartctl controls and monitors SMART disks.",
    "git-pull": "git-pull fetches from and merges with another repository.",
    "git-init": "git-init creates an empty Git repository.",
    "git-stash": "git-stash puts the changes of the working tree aside.",
    "git-gc": "git-gc cleans up unnecessary files of the repository.",
    "hostname": "hostname shows or sets the system's host name.",
    "cal": "cal displays a calendar.",
    "shutdown": "shutdown halts, powers off or reboots the machine.",
    "reboot": "reboot restarts the machine.",
    "hexdump": "hexdump displays file contents in hexadecimal.",
    "xxd": "xxd makes a hex dump or does the reverse.",
    "iostat": "iostat reports CPU and device I/O statistics.",
    "gettext": "gettext translates messages.",
    "sponge": "sponge soaks up standard input and writes it to a file.",
    "pee": "pee copies standard input to several pipes.",
    "renice": "renice alters the priority of running processes.",
    "mkfs": "mkfs builds a Linux file system.",
    "fsck": "fsck checks and repairs a Linux file system.",
    "mount": "mount mounts a file system.",
    "umount": "umount unmounts file systems.",
    "cut": "cut removes sections from each line of files.",
    "ts": "ts puts a time stamp before each input line.",
    "peekfd": "peekfd shows what a process reads and writes on its file descriptors.",
    "sum": "sum computes a checksum and counts the blocks in a file.",
    "dab": "dab is the game Dots and Boxes.",
    "zcat": "zcat prints compressed files on the standard output.",
    "shred": "shred overwrites a file to hide its contents.",
    "login": "login begins a session on the system.",
    "base32": "base32 encodes or decodes base32 data.",
    "basenc": "basenc encodes or decodes data.",
    "route": "route shows and manipulates the IP routing table.",
    "write": "write sends a message to another user.",
    "hack": "hack is a game: explore the Dungeons of Doom.",
    "quiz": "quiz is a game of random knowledge tests.",
    "wump": "wump is a game: hunt the wumpus in an underground cave.",
    "snake": "snake is a chase game.",
    "znew": "znew recompresses .Z files to .gz files.",
    "zrun": "zrun uncompresses arguments to a command.",
    "vipe": "vipe edits a pipe in the middle.",
    "proc": "proc is the process information pseudo-filesystem.",
    "attr": "attr manages extended attributes on filesystem objects.",
    "mesg": "mesg allows or denies messages from other users.",
    "bridge": "bridge shows and manipulates bridge addresses and devices.",
    "worms": "worms animates worms on the terminal.",
    "rain": "rain is an animated raindrops display.",
    "tset": "tset initializes a terminal.",
    "sail": "sail is a game with wooden ships and iron men.",
    "sources.list": "sources.list lists the configured APT data sources.",
    "shells": "shells lists the valid login shells.",
    "sudoers": "sudoers is the configuration file of sudo.",
    "whereis": "whereis locates the files of a command.",
    "fallocate": "fallocate preallocates space to a file.",
    "nologin": "nologin politely refuses a login.",
    "gitattributes": "gitattributes defines attributes for each path.",
    "shadow": "shadow is the file of encrypted passwords.",
    "hwclock": "hwclock reads or sets the hardware clock.",
    "ssh-keyscan": "ssh-keyscan gathers SSH public keys from servers.",
    "dpkg-divert": "dpkg-divert overrides a package's version of a file.",
    "ip-netns": "ip-netns manages network namespaces.",
    "ip-link": "ip-link configures network devices.",
    "ip-route": "ip-route manages the routing table.",
    "ip-address": "ip-address manages protocol addresses.",
    "dircolors": "dircolors sets up the colors of ls.",
    "systemd-cgls": "systemd-cgls shows control group contents.",
    "systemd-nspawn": "systemd-nspawn runs a command or an OS in a light-weight container.",
    "ul": "ul does underlining.",
    "c++filt": "c++filt demangles C++ and Java symbols.",
    "robots": "robots is a game: fight off villainous robots.",
}
# Names that are left out.
DROPPED = """dcb sfb pig toe gcc-ar gcc-nm arpd rtmon mpls vlan tipc vdpa genl nstat ip-sr pidwait lessfile lesspipe""".split()

# Options worth knowing first.
FAMOUS = set(
    """ls -a|ls -l|ls -h|ls -R|ls -t|ls -r|ls -S|ls -d|ls -i|ls -1|cp -r|cp -R|cp -a|cp -i|cp -p|mv -f|mv -i|mv -n|rm -r
rm -f|rm -i|mkdir -p|mkdir -m|rmdir -p|cat -n|cat -b|touch -a|touch -d|echo -n|echo -e|grep -i|grep -v|grep -r
grep -n|grep -c|grep -l|grep -E|grep -o|find -L|sed -n|sed -i|sed -e|sed -E|tar -c|tar -x|tar -t|tar -z|tar -v
tar -f|tar -j|tar -C|gzip -d|gzip -k|gzip -r|ssh -p|ssh -v|ssh -X|ssh -i|scp -r|scp -P|scp -p|rsync -a|rsync -v
rsync -z|rsync -n|rsync -r|curl -o|curl -O|curl -L|curl -s|curl -v|curl -I|wget -q|wget -O|wget -c|ps -e|ps -f|df -h
df -i|df -T|du -s|du -h|du -a|du -c|free -h|free -m|free -s|mount -a|mount -t|mount -o|umount -l|umount -f|chmod -R
chmod -v|chown -R|chown -h|ln -s|ln -f|head -n|head -c|tail -n|tail -f|tail -c|sort -n|sort -r|sort -u|sort -k
sort -t|uniq -c|uniq -d|uniq -u|wc -l|wc -w|wc -c|cut -d|cut -f|cut -c|tr -d|tr -s|tee -a|xargs -n|xargs -0|xargs -p
xargs -P|diff -u|diff -r|diff -q|diff -y|man -k|uname -a|uname -r|uname -m|date -u|date -d|kill -l|who -b|id -u
id -g|id -n|sudo -u|sudo -i|su -l|crontab -e|crontab -l|crontab -r|make -j|make -n|make -f|make -C|lsblk -f|stat -c
journalctl -f|journalctl -u|journalctl -b|journalctl -n|file -i|file -b|strace -f|strace -p|strace -o|lsof -i
ping -c|ss -l|ss -t|ss -u|ss -n|ss -p|netstat -r|netstat -i|dd --help|nproc --all|seq -s|nohup -x|watch -n|watch -d
timeout -k|timeout -s|base64 -d|split -b|split -l|unzip -l|zip -r|xz -d|xz -k|jq -r|tree -L|tree -a|passwd -l
passwd -d|useradd -m|usermod -a""".replace("\n", "|").split("|")
)

# Famous options whose description in the page is too long or reads badly cut: (command, option): (long form, meaning).
OPTION_OVERRIDE = {
    ("ls", "-l"): ("", "use a long listing format"),
    ("ls", "-t"): ("", "sort by time, newest first"),
    ("ls", "-S"): ("", "sort by file size, largest first"),
    ("ls", "-1"): ("", "list one file per line"),
    ("rm", "-r"): ("--recursive", "remove directories and their contents recursively"),
    ("cp", "-r"): ("--recursive", "copy directories recursively"),
    ("mkdir", "-p"): ("--parents", "make parent directories as needed"),
    ("grep", "-i"): ("--ignore-case", "ignore case distinctions"),
    ("grep", "-r"): ("--recursive", "read all files under each directory, recursively"),
    ("grep", "-c"): ("--count", "print only a count of matching lines"),
    ("grep", "-l"): ("--files-with-matches", "print only the names of files with matches"),
    ("grep", "-o"): ("--only-matching", "print only the matched parts of a line"),
    ("grep", "-n"): ("--line-number", "prefix each line of output with its line number"),
    ("grep", "-E"): ("--extended-regexp", "interpret patterns as extended regular expressions"),
    ("tar", "-x"): ("--extract", "extract files from an archive"),
    ("tar", "-z"): ("--gzip", "filter the archive through gzip"),
    ("tar", "-f"): ("--file", "use the given archive file"),
    ("sed", "-i"): ("--in-place", "edit files in place"),
    ("sed", "-n"): ("--quiet", "suppress automatic printing of pattern space"),
    ("sed", "-e"): ("--expression", "add a script to the commands to be executed"),
    ("sed", "-E"): ("--regexp-extended", "use extended regular expressions in the script"),
    ("head", "-n"): ("--lines", "print the first NUM lines"),
    ("tail", "-n"): ("--lines", "output the last NUM lines"),
    ("sort", "-u"): ("--unique", "output only the first of equal lines"),
    ("diff", "-u"): ("", "output unified context"),
    ("kill", "-l"): ("--list", "list signal names"),
    ("ssh", "-p"): ("", "port to connect to on the remote host"),
    ("ssh", "-v"): ("", "verbose mode"),
    ("ssh", "-i"): ("", "selects the file of the private key"),
    ("ssh", "-X"): ("", "enables X11 forwarding"),
    ("scp", "-r"): ("", "recursively copy entire directories"),
    ("scp", "-P"): ("", "port to connect to on the remote host"),
    ("rsync", "-n"): ("--dry-run", "perform a trial run with no changes made"),
    ("rsync", "-z"): ("--compress", "compress file data during the transfer"),
    ("curl", "-o"): ("--output", "write output to a file instead of the standard output"),
    ("curl", "-L"): ("--location", "follow redirects"),
    ("curl", "-I"): ("--head", "fetch the headers only"),
    ("curl", "-s"): ("--silent", "silent mode"),
    ("make", "-j"): ("--jobs", "number of jobs to run at once"),
    ("wget", "-O"): ("--output-document", "write the document to the given file"),
    ("journalctl", "-f"): ("--follow", "show the newest entries and follow the journal"),
    ("journalctl", "-u"): ("--unit", "show messages of one unit"),
    ("crontab", "-e"): ("", "edit the current crontab"),
    ("crontab", "-l"): ("", "display the current crontab"),
    ("crontab", "-r"): ("", "remove the current crontab"),
    ("free", "-h"): ("--human", "show sizes in human readable units"),
    ("uname", "-a"): ("--all", "print all information"),
    ("sudo", "-i"): ("--login", "run the login shell of the target user"),
}

# Tasks in a user's words -> answer.
TASKS = [
    (("copy a file", "copy files", "make a copy of a file"), "Use cp. It copies files and directories."),
    (
        ("copy a directory", "copy a folder", "copy a directory tree"),
        "Use cp -r, which copies directories recursively.",
    ),
    (("move a file", "rename a file", "move files"), "Use mv. It moves (renames) files."),
    (("delete a file", "remove a file", "delete files"), "Use rm. It removes files or directories."),
    (
        ("delete a directory", "remove a directory tree", "delete a folder"),
        "Use rm -r, which removes directories and their contents.",
    ),
    (("create a directory", "make a directory", "make a new folder"), "Use mkdir. It makes directories."),
    (
        ("list files", "see the files in a directory", "list directory contents", "list the files in a folder"),
        "Use ls. It lists directory contents.",
    ),
    (
        ("list hidden files", "see hidden files", "show hidden files"),
        "Use ls -a, which does not ignore entries starting with a dot.",
    ),
    (("change directory", "go to another directory"), "Use cd. It changes the working directory."),
    (
        ("see the current directory", "print the working directory", "find out where I am"),
        "Use pwd. It prints the name of the working directory.",
    ),
    (("show a file", "print a file", "see the contents of a file"), "Use cat or less to show a file."),
    (("find a file", "search for files", "find files by name"), "Use find. It searches for files in a directory tree."),
    (
        ("search text in files", "search for a word in a file", "find a string in files"),
        "Use grep. It prints lines that match patterns.",
    ),
    (
        ("replace text in a file", "substitute text"),
        "Use sed. It is a stream editor for filtering and transforming text.",
    ),
    (
        ("see disk usage", "show disk usage", "check disk space", "see free disk space"),
        "Use df for file systems and du for directories.",
    ),
    (("see the size of a directory", "find out how big a directory is"), "Use du -s, which displays only a total."),
    (
        ("see memory usage", "check free memory", "show memory usage"),
        "Use free. It displays the amount of free and used memory.",
    ),
    (
        ("list processes", "see running processes", "show running programs"),
        "Use ps or top to see the running processes.",
    ),
    (("kill a process", "stop a process", "end a program"), "Use kill. It sends a signal to a process."),
    (
        ("change permissions", "make a file executable", "change file permissions"),
        "Use chmod. It changes the permissions of files.",
    ),
    (("change the owner of a file", "change ownership"), "Use chown. It changes the owner and group of files."),
    (("make a link", "create a symbolic link", "make a symlink"), "Use ln -s, which makes symbolic links."),
    (
        ("pack files into an archive", "create a tar archive", "make an archive"),
        "Use tar -c, which creates a new archive.",
    ),
    (
        ("extract an archive", "unpack a tar file", "extract a tar archive"),
        "Use tar -x, which extracts files from an archive.",
    ),
    (("compress a file", "make a file smaller"), "Use gzip, xz or zstd to compress a file."),
    (("decompress a file", "unpack a gz file"), "Use gunzip. It expands files that gzip compressed."),
    (("unpack a zip file", "extract a zip archive"), "Use unzip. It extracts files from a ZIP archive."),
    (
        ("log in to another machine", "connect to a server", "log in to a remote machine"),
        "Use ssh. It logs in to a remote machine over an encrypted connection.",
    ),
    (
        ("copy a file to another machine", "copy files to a server"),
        "Use scp or rsync to copy files to another machine.",
    ),
    (("download a file", "fetch a URL", "download a web page"), "Use wget or curl to download a file."),
    (
        ("install a package", "install software", "install a program"),
        "Use apt install. apt installs, upgrades and removes packages.",
    ),
    (("remove a package", "uninstall a program"), "Use apt remove. apt installs, upgrades and removes packages."),
    (("update the system", "upgrade packages"), "Use apt update and then apt upgrade."),
    (
        ("start a service", "start a daemon"),
        "Use systemctl start. systemctl controls the systemd system and service manager.",
    ),
    (
        ("stop a service", "stop a daemon"),
        "Use systemctl stop. systemctl controls the systemd system and service manager.",
    ),
    (("restart a service",), "Use systemctl restart. systemctl controls the systemd system and service manager."),
    (
        ("read the system log", "see log messages", "see the logs of a service"),
        "Use journalctl. It prints log entries from the systemd journal.",
    ),
    (
        ("see my IP address", "show network addresses", "find my IP address"),
        "Use ip addr. ip shows and changes network addresses, routes and devices.",
    ),
    (
        ("test whether a host is reachable", "check the network connection"),
        "Use ping. It sends echo requests to a network host to see whether it answers.",
    ),
    (("see open ports", "list listening sockets", "list network connections"), "Use ss. It shows the network sockets."),
    (("look up a name in the DNS", "resolve a host name"), "Use dig or host to look up a name in the DNS."),
    (("count lines", "count words", "count the lines of a file"), "Use wc. It prints newline, word, and byte counts."),
    (("sort lines", "sort a file"), "Use sort. It sorts lines of text files."),
    (("remove duplicate lines", "find repeated lines"), "Use sort and then uniq, which omits repeated lines."),
    (("compare two files", "see the differences between files"), "Use diff. It compares files line by line."),
    (("apply a patch",), "Use patch. It applies a diff file to an original."),
    (("see the first lines of a file",), "Use head. It outputs the first part of files."),
    (("see the last lines of a file", "follow a log file"), "Use tail. It outputs the last part of files."),
    (("edit a file", "edit a text file"), "Use nano or vim to edit a text file."),
    (
        ("read the manual", "get help for a command", "read a manual page"),
        "Use man. It shows the manual page of a command.",
    ),
    (("change my password", "change the password"), "Use passwd. It changes a user's password."),
    (("add a user", "create a user"), "Use adduser or useradd to create a user."),
    (("run a command as root", "become root"), "Use sudo. It executes a command as another user, usually root."),
    (
        ("schedule a job", "run a command every day", "run a job regularly"),
        "Use crontab. It edits a user's table of scheduled commands.",
    ),
    (("compile a C program", "compile C code"), "Use gcc. It is the GNU C and C++ compiler."),
    (("debug a program",), "Use gdb. It is the GNU debugger."),
    (("trace system calls",), "Use strace. It traces system calls and signals."),
    (("mount a disk", "mount a file system"), "Use mount. It mounts a file system."),
    (("see the disks", "list block devices", "list disks"), "Use lsblk. It lists block devices."),
    (("see who is logged in", "list logged in users"), "Use who. It shows who is logged on."),
    (("see the kernel version", "see which kernel is running"), "Use uname -r, which prints the kernel release."),
    (("see the date", "show the time", "set the date"), "Use date. It prints or sets the system date and time."),
    (("see kernel messages",), "Use dmesg. It prints or controls the kernel ring buffer."),
    (("clone a repository", "copy a git repository"), "Use git clone. It clones a repository into a new directory."),
    (("commit changes", "record changes in git"), "Use git commit. It records changes to the repository."),
    (
        ("make a checksum", "check the checksum of a file"),
        "Use sha256sum. It computes and checks SHA256 message digests.",
    ),
    (("create an SSH key", "make an ssh key"), "Use ssh-keygen. It creates and manages SSH keys."),
    (
        ("create an empty file", "change a file's time stamp"),
        "Use touch. It changes file timestamps and creates empty files.",
    ),
    (("shut down the machine", "power off the computer"), "Use shutdown or systemctl poweroff."),
    (("reboot", "restart the machine"), "Use reboot or systemctl reboot."),
    (("see how long the system has been running",), "Use uptime. It tells how long the system has been running."),
]

# One example for each of the commonest commands: (command, example, what it does).
EXAMPLES = [
    ("ls", "ls -l /tmp", "lists the files in /tmp with their details"),
    ("cp", "cp a.txt b.txt", "copies a.txt to b.txt"),
    ("mv", "mv a.txt dir/", "moves a.txt into dir"),
    ("rm", "rm a.txt", "removes a.txt"),
    ("mkdir", "mkdir -p a/b", "makes the directory a/b and its parent"),
    ("cd", "cd /etc", "goes to the directory /etc"),
    ("cat", "cat a.txt", "prints a.txt"),
    ("less", "less a.txt", "shows a.txt page by page"),
    ("head", "head -n 5 a.txt", "prints the first five lines of a.txt"),
    ("tail", "tail -f log", "follows the file log as it grows"),
    ("grep", "grep -r word dir", "searches for word in all files below dir"),
    ("find", "find . -name '*.c'", "finds all files whose name ends in .c"),
    ("sed", "sed 's/old/new/g' a.txt", "replaces old by new in each line of a.txt"),
    ("awk", "awk '{print $1}' a.txt", "prints the first field of each line of a.txt"),
    ("tar", "tar -czf a.tar.gz dir", "packs dir into the archive a.tar.gz"),
    ("gzip", "gzip a.txt", "compresses a.txt to a.txt.gz"),
    ("unzip", "unzip a.zip", "extracts the files of a.zip"),
    ("ssh", "ssh user@host", "logs in to host as user"),
    ("scp", "scp a.txt host:", "copies a.txt to host"),
    ("rsync", "rsync -a dir/ host:dir/", "copies dir to host"),
    ("curl", "curl -O URL", "downloads the file at URL"),
    ("wget", "wget URL", "downloads the file at URL"),
    ("chmod", "chmod +x script", "makes script executable"),
    ("chown", "chown user a.txt", "makes user the owner of a.txt"),
    ("ln", "ln -s target link", "makes a symbolic link to target"),
    ("sort", "sort -n a.txt", "sorts the lines of a.txt as numbers"),
    ("uniq", "sort a.txt | uniq -c", "counts equal lines of a.txt"),
    ("wc", "wc -l a.txt", "counts the lines of a.txt"),
    ("cut", "cut -d: -f1 /etc/passwd", "prints the user names"),
    ("tr", "tr a-z A-Z", "turns lower case into upper case"),
    ("xargs", "find . -name '*.o' | xargs rm", "removes all files that find printed"),
    ("diff", "diff -u old new", "shows the differences of two files"),
    ("patch", "patch -p1 < a.diff", "applies a.diff"),
    ("ps", "ps -ef", "lists all processes"),
    ("kill", "kill 1234", "ends process 1234"),
    ("df", "df -h", "shows free space of all file systems"),
    ("du", "du -sh dir", "shows the size of dir"),
    ("free", "free -h", "shows free memory"),
    ("man", "man ls", "shows the manual page of ls"),
    ("systemctl", "systemctl restart ssh", "restarts the ssh service"),
    ("journalctl", "journalctl -u ssh", "shows the log of the ssh service"),
    ("apt", "apt install tree", "installs the package tree"),
    ("dpkg", "dpkg -l", "lists the installed packages"),
    ("git", "git clone URL", "copies a repository"),
    ("make", "make -j2", "builds with two jobs"),
    ("gcc", "gcc -o prog prog.c", "compiles prog.c to prog"),
    ("mount", "mount /dev/sdb1 /mnt", "mounts a disk on /mnt"),
    ("ip", "ip addr", "shows the network addresses"),
    ("ss", "ss -tln", "shows the listening TCP sockets"),
    ("ping", "ping -c 3 host", "sends three echo requests to host"),
    ("dig", "dig debian.org", "looks up debian.org in the DNS"),
    ("sudo", "sudo apt update", "updates the package lists as root"),
    ("crontab", "crontab -e", "edits the current crontab"),
    ("date", "date -u", "prints the time in UTC"),
    ("touch", "touch a.txt", "creates an empty file a.txt"),
    ("echo", "echo hello", "prints hello"),
    ("tee", "make | tee log", "shows the output of make and writes it to log"),
    ("watch", "watch df -h", "runs df -h every two seconds"),
]
EXAMPLE_FORMS = [
    "How do I use {c}?",
    "how to use {c}",
    "Give me an example of {c}.",
    "Show me an example of {c}.",
    "{c} example",
    "Show an example of the {c} command.",
    "How is {c} used?",
    "how do I use the {c} command?",
    "Example for {c}?",
    "How does {c} work?",
]
EXAMPLE_HELD = ["Please show how to use {c}."]
EXAMPLE_ANSWER = "For example, {e} {d}."

TASK_FORMS = [
    "How do I {t}?",
    "How can I {t}?",
    "how to {t}",
    "How do I {t} on Linux?",
    "How to {t}?",
    "I want to {t}.",
    "What is the command to {t}?",
    "which command do I use to {t}?",
    "how do i {t}",
    "Tell me how to {t}.",
]
TASK_HELD = ["What do I type to {t}?"]

# Questions about one command. {c} is its name. The HELD forms are never trained on.
FORWARD = [
    "What does {c} do?",
    "What does the {c} command do?",
    "what does {c} do",
    "What is {c}?",
    "what is {c}",
    "{c}?",
    "{c}",
    "Explain {c}.",
    "Tell me about {c}.",
    "What is {c} for?",
    "What is the {c} command?",
    "what does the command {c} do?",
    "What is the purpose of {c}?",
    "Describe {c}.",
    "explain the {c} command",
    "What is the {c} command for?",
    "Hi, what does {c} do?",
    "What do I use {c} for?",
    "What's {c}?",
    "whats {c}",
    "Do you know {c}?",
    "{c} command",
    "man {c}",
    "Can you explain {c}?",
    "what is the use of {c}?",
    "I do not know {c}. What is it?",
]
FORWARD_HELD = ["Can you tell me what {c} does?", "What do people use {c} for?"]

# Questions from the description to the command. {d} is "lists directory contents", {b} "list directory contents".
REVERSE_VERB = [
    "Which command {d}?",
    "What command {d}?",
    "which command {d}",
    "Which program {d}?",
    "How do I {b}?",
    "how to {b}",
    "Which command is used to {b}?",
    "How can I {b}?",
    "Name a command that {d}.",
    "What can I use to {b}?",
]
REVERSE_NOUN = [
    "Which command is {d}?",
    "which command is {d}",
    "Which program is {d}?",
    "Name {d}.",
    "What is the name of {d}?",
]
REVERSE_HELD = ["Which tool {d}?"]

OPTION = [
    "What does the {o} option of {c} mean?",
    "What does the {o} option of {c} do?",
    "What does {c} {o} do?",
    "what does {c} {o} mean",
    "{c} {o}?",
    "{c} {o}",
    "What is {o} in {c}?",
    "What does {o} do in {c}?",
    "what is the {o} option of {c}",
    "Explain {c} {o}.",
    "What is the meaning of {o} for {c}?",
    "what does {o} mean for {c}?",
]
OPTION_HELD = ["Tell me what {o} does in {c}."]

UNKNOWN = "I do not know a command named {c}."
OFFTOPIC = "I do not know that. I only know Unix commands."
OFFTOPIC_Q = """What is the capital of France?|Who wrote Hamlet?|What is the meaning of life?|How tall is Mount Everest?
What is the weather today?|Who is the president?|Tell me a joke.|Write a poem about spring.|What is two plus two?
Do you like music?|What should I eat tonight?|Who won the football match?|Translate hello into German.|What is love?
How do I bake bread?|What is the best film?|Tell me a story.|What is quantum physics?|Who was Napoleon?
How old is the universe?|What is the population of China?|Can you drive a car?|What colour is the sky?|Sing a song.
How do I lose weight?|What is the speed of light?|Where is Paris?|Who discovered penicillin?|When did the war end?
What is your favourite food?|How do I tie a tie?|What stocks should I buy?|Is there life on Mars?|What day is it?
Write a Python program.|Solve this equation.|Summarise this book.|Who painted the Mona Lisa?|What is a black hole?
How many planets are there?|What is photosynthesis?|How do I get to the station?|What is the price of gold?
Where do penguins live?|Who are the Beatles?|How does a car engine work?|What is democracy?|Name a famous painter.
What is the largest ocean?|How do airplanes fly?|What time is it in Tokyo?|Who invented the telephone?""".replace(
    "\n", "|"
).split("|")

ABOUT = (
    "I am a small Unix helper. I can tell you what a command does, which command does a job, and what an option means."
)
SMALL_TALK = [
    (
        ("hi", "hello", "Hello!", "Hi!", "hey", "Hi there", "good morning", "Hello there!", "Good evening"),
        "Hello! I am a small Unix helper. Ask me about a command.",
    ),
    (
        (
            "who are you?",
            "What are you?",
            "who are you",
            "What is your name?",
            "are you a robot?",
            "Introduce yourself.",
            "Who am I talking to?",
        ),
        ABOUT,
    ),
    (
        (
            "what can you do?",
            "What can you do for me?",
            "help",
            "Help me",
            "can you help me?",
            "How can you help me?",
            "What do you know?",
            "what can i ask you?",
        ),
        ABOUT,
    ),
    (
        ("thanks", "thank you", "Thank you!", "Thanks a lot.", "great, thanks", "cheers", "ok thanks"),
        "You are welcome.",
    ),
    (("bye", "goodbye", "Good bye!", "see you", "exit", "quit"), "Goodbye!"),
    (("how are you?", "How are you doing?", "how is it going?"), "I am fine, thank you. Ask me about a Unix command."),
    (("ok", "good", "great", "nice", "cool", "well done"), "Good. Ask me about another command."),
    (
        ("Are you ChatGPT?", "are you an AI?", "Who made you?", "What model are you?"),
        "I am a small Unix helper, a tiny language model that learned from manual pages.",
    ),
]
SYSTEM = [
    "You are a helpful assistant.",
    "You are a Unix helper.",
    "Answer shortly.",
    "You are a small Unix helper. Be brief.",
]

# Verbs that open a NAME line, with the third person where it is not regular.
VERBS = """add adjust administer allow analyze annotate append apply archive assemble attach authenticate backup batch block boot
bring broadcast build bundle calculate call change check clean clear clone close collect combine compact compare
compile compose compress compute concatenate configure connect construct control convert copy count create cut
deactivate debug decode decompress decrypt define delete describe detach detect determine diagnose disable discard
disconnect display do download draw dump duplicate echo edit eject email emit emulate enable encode encrypt enter
enumerate erase estimate evaluate examine execute expand export extract factor fetch filter find fix flush follow
force format free freeze generate get give grab graph grow halt handle hide identify ignore implement import include
incorporate increment indicate initialize insert inspect install instruct interpret invoke issue join keep kill launch
limit link list load locate lock log look maintain make manage manipulate mark measure merge migrate mirror modify
monitor mount move move notify obtain open optimize output pack page parse pause perform pick ping play prepare
prevent preview print probe process produce prompt protect provide prune publish pull push put query queue quit re-
read read rebuild receive recode record recover reformat register reload remove rename reorganize reorder repair
repeat replace replay report reserve reset resize restore restrict retrieve return reverse revert rewrite rotate run
save scan schedule search see select send serve set set-up setup show shrink shuffle shut simulate sleep sort specify
split spool start stop store stream strip submit substitute sum summarize suspend swap switch synchronize tail take
talk tell terminate test toggle trace track transfer transform translate transmit trim truncate try tune turn type
unblock uncompress undo uninstall unlock unmount unpack unregister unset unshare update upgrade upload use validate
verify view wait walk wipe wrap write zero apply edit lookup reapply resolve show inform fill change remove summarise
initialise introspect retrieve evaluate hash reconfigure stash enforce extend omit compare signal unmask compress
stress tell untie""".split()
# Verbs that are safe to inflect later in a NAME line, after "and" or "or".
LATER = set(
    """print write set remove create modify manipulate execute delete expand decompress uncompress change extract
check edit convert install configure show display verify start stop kill stat restore decode decrypt transform
update merge send copy truncate adjust unpack resize report list ignore control compare extend omit signal
enforce reinitialize query move repair""".split()
)

# More wordings, put together: an opener and a clause.
OPENERS = [
    "Could you say",
    "Do you know",
    "I want to know",
    "Please explain",
    "Please say",
    "I would like to know",
    "tell me",
    "Could you explain",
    "I forgot",
    "Remind me",
    "Hello, do you know",
    "Please tell me",
    "I wonder",
    "Would you tell me",
]
FORWARD_CLAUSES = [
    "what {c} does",
    "what {c} is",
    "what the {c} command does",
    "what the command {c} is for",
    "what {c} is good for",
]
REVERSE_CLAUSES = ["which command {d}", "which program {d}", "what command {d}", "how to {b}", "the command that {d}"]
TASK_CLAUSES = ["how to {t}", "how I {t}", "how I can {t}", "which command to use to {t}", "the command to {t}"]
OPTION_CLAUSES = [
    "what {c} {o} does",
    "what {o} means for {c}",
    "what the {o} option of {c} does",
    "the {o} option of {c}",
]
EXAMPLE_CLAUSES = ["how to use {c}", "how {c} is used", "how I use the {c} command", "an example of {c}"]
FORWARD += [
    "What is {c} used for?",
    "What is the {c} command used for?",
    "what is {c} used for",
    "what's {c} used for?",
]
FORWARD += [
    "What can {c} do?",
    "What would I use {c} for?",
    "When do I use {c}?",
    "Is {c} a command?",
    "so what does {c} do?",
]
REVERSE_VERB += ["Is there a command that {d}?", "I need a command that {d}.", "What {d}?", "which utility {d}?"]
TASK_FORMS += [
    "What should I run to {t}?",
    "I need to {t}.",
    "Is there a way to {t}?",
    "What do I use to {t}?",
    "Which program lets me {t}?",
    "What must I do to {t}?",
    "{t}",
    "what can I run to {t}?",
    "What do I enter to {t}?",
    "Which command is it to {t}?",
]
