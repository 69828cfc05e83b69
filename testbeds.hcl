# A working example in two parts: the virtual lab, which runs on any machine with
# QEMU after scripts/lab made its images, and below it five testbeds of real
# hardware.

# ---------------------------------------------------------------- virtual lab

locals {
  # Debian's kernels with less noise: notices on the console and no more, no
  # self-tests that take longer than the boot. The second line is for x86.
  quiet = "loglevel=6 cryptomgr.notests"
  plain = "${local.quiet} mitigations=off no_timer_check tsc=reliable"
  # CFS as a batch machine would have it: a task that wakes up preempts nobody
  # before it has run for 25 ms.
  sched  = "/sys/kernel/debug/sched"
  coarse = "lab.set=${local.sched}/wakeup_granularity_ns=100000000 lab.set=${local.sched}/min_granularity_ns=25000000 lab.set=${local.sched}/latency_ns=75000000"
}

# A guest of the lab. With icount its time follows the instructions it executes,
# so that its figures do not depend on the controller's load.
class "guest" {
  ready = "kernsweep-lab: ready"
  ssh {
    user   = "root"
    key    = "lab/keys/id_ed25519"
    config = "none"
  }
  boot "qemu" {
    host_key = "lab/keys/host_ed25519.pub"
    ports    = [5001, 5201]
  }
  timeouts {
    boot    = "3m"
    silence = "90s"
  }
}

target "x86" {
  class = class.guest
  arch  = "amd64"
  boot "qemu" { icount = "shift=1" } # 2 ns an instruction
}

target "malta" { # stands in for a router of 2008
  class = class.guest
  arch  = "mipsle"
  boot "qemu" { icount = "shift=3" } # 8 ns an instruction
}

# 64 CPUs need more than one thread of the controller, so no icount: it measures
# the controller, and its figures are marked as not comparable.
target "server64" {
  class = class.guest
  arch  = "amd64"
  boot "qemu" {
    cpus   = 64
    memory = 1024
  }
  timeouts { boot = "10m" }
}

kernel "cfs_61" {
  scheduler = "cfs"
  release   = "6.1.*"
  image "amd64" {
    kernel  = "lab/img/vmlinuz-amd64-6.1"
    initrd  = "lab/img/base-amd64.cpio,lab/img/mods-amd64-6.1.cpio"
    cmdline = local.plain
  }
  image "mipsle" {
    kernel  = "lab/img/vmlinuz-mipsel-6.1"
    initrd  = "lab/img/base-mipsel.cpio,lab/img/mods-mipsel-6.1.cpio"
    cmdline = local.quiet
  }
}

kernel "cfs_61_coarse" {
  scheduler = "cfs"
  release   = "6.1.*"
  image "mipsle" {
    kernel  = "lab/img/vmlinuz-mipsel-6.1"
    initrd  = "lab/img/base-mipsel.cpio,lab/img/mods-mipsel-6.1.cpio"
    cmdline = "${local.quiet} ${local.coarse}"
  }
}

kernel "eevdf_612" {
  scheduler = "eevdf"
  release   = "6.12.*"
  image "amd64" {
    kernel  = "lab/img/vmlinuz-amd64-6.12"
    initrd  = "lab/img/base-amd64.cpio,lab/img/mods-amd64-6.12.cpio"
    cmdline = local.plain
  }
}
