# Process 1 of a node, in fresh network, mount, host name and process namespaces: makes them a machine, and holds them.
#
#   sh init.sh NAME PAUSE
#
# Says `node PID` when all is done, with its number as it is seen from outside.
set -eu

# /proc is still that of the bed, so this is our number there.
read -r pid rest </proc/self/stat

# A kubelet wants mounts to spread; they come no further than the namespace of this node.
mount --make-rshared /
mount -t proc proc /proc

# What a node writes stays in its own memory and goes with it. /var/lib keeps what the machine has there (a home, a
# cache), but writes go elsewhere; where that cannot be had, it is empty.
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/log
mkdir -p /run/lock /run/bed/upper /run/bed/work
mount -t overlay -o lowerdir=/var/lib,upperdir=/run/bed/upper,workdir=/run/bed/work overlay /var/lib 2>/dev/null ||
    mount -t tmpfs -o mode=755 tmpfs /var/lib
for folder in containerd kubelet cni; do
    mkdir -p /var/lib/$folder
    mount -t tmpfs -o mode=755 tmpfs /var/lib/$folder
done

# A kubelet sets these for the whole kernel. It may set copies.
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
    kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    copy=/run/bed/$(echo $setting | tr / .)
    cat /proc/sys/$setting >"$copy"
    mount --bind "$copy" /proc/sys/$setting
done

echo "$1" >/proc/sys/kernel/hostname
echo "node $pid"
exec "$2"
