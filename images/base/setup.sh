#!/bin/sh
# Run by mmdebstrap on the finished tree, $1.
set -eu
root=$1

chroot "$root" groupadd --gid 1000 agent
chroot "$root" useradd --uid 1000 --gid 1000 --create-home --no-log-init --shell /bin/bash agent

# What belongs to the building machine, or differs from one build to the next.
rm -f "$root"/etc/passwd- "$root"/etc/group- "$root"/etc/shadow- "$root"/etc/gshadow- \
  "$root"/etc/subuid- "$root"/etc/subgid-
rm -f "$root"/var/cache/ldconfig/aux-cache "$root"/var/cache/debconf/*-old
find "$root"/var/log -type f -delete

# Empty or plain here, so that whatever mounts its own over them leaves no mount point behind in a layer.
printf 'localhost\n' > "$root"/etc/hostname
printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' > "$root"/etc/hosts
: > "$root"/etc/resolv.conf
chmod 644 "$root"/etc/hostname "$root"/etc/hosts "$root"/etc/resolv.conf
