# A working example in two parts: the virtual lab, which runs on any machine with
# QEMU after scripts/lab made its images, and below it five testbeds of real
# hardware.

# ---------------------------------------------------------------- virtual lab

locals {
  # Debian's kernels with less noise: notices on the console and no more, no
  # self-tests that take longer than the boot. Without autogroup, or the load of
  # a measurement would share nothing but its session with what is measured.
  quiet = "loglevel=6 cryptomgr.notests noautogroup"
  plain = "${local.quiet} mitigations=off no_timer_check tsc=reliable"
  # With a given lpj, 64 emulated CPUs need not calibrate their delay loops.
  large = "${local.plain} lpj=4000000"
  # The kernels of scripts/lab --mips; ramfs may take more than half of the RAM.
  tiny = "loglevel=6 rootfstype=ramfs"
  # CFS as a batch machine would have it: who runs is not preempted by a task that
  # wakes up before it has run for 25 ms.
  coarse = "lab.sched=wakeup_granularity_ns=100000000 lab.sched=min_granularity_ns=25000000"
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
  scale = 0.01                       # of the fixed work, for all its kernels alike
  boot "qemu" { icount = "shift=3" } # 8 ns an instruction
}

# The next two boot kernels that scripts/lab --mips builds.
target "malta32" { # malta with a router's memory
  class = class.guest
  arch  = "mipsle"
  scale = 0.01 # of the fixed work, for all its kernels alike
  boot "qemu" {
    icount = "shift=3"
    memory = 32
  }
}

target "maltabe" { # big-endian, stands in for an access point of 180 MHz
  class = class.guest
  arch  = "mips"
  scale = 0.01 # of the fixed work, for all its kernels alike
  boot "qemu" {
    icount = "shift=4" # 16 ns an instruction
    memory = 24
  }
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
    initrd  = "lab/img/base-amd64.cpio,lab/img/tools-amd64.cpio,lab/img/mods-amd64-6.1.cpio"
    cmdline = local.plain
  }
  image "server64" {
    kernel  = "lab/img/vmlinuz-amd64-6.1"
    initrd  = "lab/img/base-amd64.cpio,lab/img/tools-amd64.cpio,lab/img/mods-amd64-6.1.cpio"
    cmdline = local.large
  }
  image "mipsle" {
    kernel  = "lab/img/vmlinuz-mipsel-6.1"
    initrd  = "lab/img/base-mipsel.cpio,lab/img/tools-mipsel.cpio,lab/img/mods-mipsel-6.1.cpio"
    cmdline = local.quiet
  }
}

kernel "cfs_61_coarse" {
  scheduler = "cfs"
  release   = "6.1.*"
  image "mipsle" {
    kernel  = "lab/img/vmlinuz-mipsel-6.1"
    initrd  = "lab/img/base-mipsel.cpio,lab/img/tools-mipsel.cpio,lab/img/mods-mipsel-6.1.cpio"
    cmdline = "${local.quiet} ${local.coarse}"
  }
}

kernel "eevdf_612" {
  scheduler = "eevdf"
  release   = "6.12.*"
  image "amd64" {
    kernel  = "lab/img/vmlinuz-amd64-6.12"
    initrd  = "lab/img/base-amd64.cpio,lab/img/tools-amd64.cpio,lab/img/mods-amd64-6.12.cpio"
    cmdline = local.plain
  }
  image "server64" {
    kernel  = "lab/img/vmlinuz-amd64-6.12"
    initrd  = "lab/img/base-amd64.cpio,lab/img/tools-amd64.cpio,lab/img/mods-amd64-6.12.cpio"
    cmdline = local.large
  }
}

kernel "tiny_61" {
  scheduler = "cfs"
  release   = "6.1.*-hz100-none"
  image "mipsle" {
    kernel  = "lab/img/vmlinux-mipsel-6.1-hz100-none"
    initrd  = "lab/img/base-mipsel.cpio"
    cmdline = local.tiny
  }
  image "mips" {
    kernel  = "lab/img/vmlinux-mips-6.1-hz100-none"
    initrd  = "lab/img/base-mips.cpio.gz"
    cmdline = local.tiny
  }
}

kernel "tiny_61_preempt" {
  scheduler = "cfs"
  release   = "6.1.*-hz1000-preempt"
  image "mips" {
    kernel  = "lab/img/vmlinux-mips-6.1-hz1000-preempt"
    initrd  = "lab/img/base-mips.cpio.gz"
    cmdline = local.tiny
  }
}

kernel "tiny_612" {
  scheduler = "eevdf"
  release   = "6.12.*-hz100-none"
  image "mipsle" {
    kernel  = "lab/img/vmlinux-mipsel-6.12-hz100-none"
    initrd  = "lab/img/base-mipsel.cpio"
    cmdline = local.tiny
  }
}

# One transfer in each direction, the sender being the client: iperf times what
# it sends. Throughput is by the guest's clock, the only one that counts under
# icount. A small window keeps the queue between guest and controller short.
workload "iperf" "lab" {
  tool     = "iperf2"
  duration = "5s"
  window   = "64K"
  scenario "to_target" { server = "target" }
  scenario "from_target" { server = "peer" }
}

# malta has no floating-point unit, and its agent computes in integers: a unit
# takes it some 500 times as long, hence its scale.
workload "crunch" "lab" {
  work = 330
  scenario "j1" { parallel = 1 }
  scenario "j3" { parallel = 3 }
}

# Long enough for the 1,000 samples that a 99th percentile needs, also where a
# coarse scheduler makes the probe miss wakeups.
workload "latency" "lab" {
  # One and two busy tasks a CPU; their fixed work ends the trial, so its runtime
  # can be compared. An idle guest's timers would follow the controller instead.
  scenario "load1" {
    load = 1
    work = 1400
  }
  scenario "load2" {
    load = 2
    work = 700
  }
}

# What scripts/quickstart runs: CFS against EEVDF on x86, and CFS as it comes
# against a coarse CFS on malta.
sweep "quick" {
  boots  = 2
  repeat = 1
  warmup = 0
  matrix {
    targets   = [target.x86]
    kernels   = [kernel.cfs_61, kernel.eevdf_612]
    workloads = [workload.iperf.lab, workload.crunch.lab, workload.latency.lab]
    baseline  = kernel.cfs_61
  }
  matrix {
    targets   = [target.malta]
    kernels   = [kernel.cfs_61, kernel.cfs_61_coarse]
    workloads = [workload.iperf.lab, workload.crunch.lab, workload.latency.lab]
    baseline  = kernel.cfs_61
  }
}

# Two minutes for one claim: what EEVDF does to the tail of timer wakeups beside
# two busy tasks. It is declared, so that 4 boots of each kernel can decide it.
workload "latency" "tail" {
  load = 2
  work = 700
}

sweep "tail" {
  boots   = 4
  repeat  = 1
  warmup  = 0
  primary = ["latency.tail:intended.p99"]
  matrix {
    targets   = [target.x86]
    kernels   = [kernel.cfs_61, kernel.eevdf_612]
    workloads = [workload.latency.tail]
    baseline  = kernel.cfs_61
  }
}

# After scripts/lab --mips. Its small targets have no iperf: the agent's own
# stream stands in.
workload "iperf" "tiny" {
  tool     = "stream"
  duration = "5s"
}

sweep "mips" {
  boots  = 2
  repeat = 1
  warmup = 0
  matrix {
    targets   = [target.malta32]
    kernels   = [kernel.tiny_61, kernel.tiny_612]
    workloads = [workload.iperf.tiny, workload.crunch.lab, workload.latency.lab]
    baseline  = kernel.tiny_61
  }
  matrix {
    targets   = [target.maltabe]
    kernels   = [kernel.tiny_61, kernel.tiny_61_preempt]
    workloads = [workload.iperf.tiny, workload.crunch.lab, workload.latency.lab]
    baseline  = kernel.tiny_61
  }
}

# A server of 64 CPUs, for the long evening: it is slow, and not comparable.
sweep "server" {
  boots  = 1
  repeat = 1
  warmup = 0
  matrix {
    targets   = [target.server64]
    kernels   = [kernel.cfs_61, kernel.eevdf_612]
    workloads = [workload.crunch.lab, workload.latency.lab]
    baseline  = kernel.cfs_61
  }
}

# The smallest sweep that touches everything, for the tests.
workload "crunch" "canary" { work = 40 }

workload "iperf" "canary" {
  tool     = "iperf2"
  server   = "target"
  duration = "2s"
  window   = "64K"
}

sweep "canary" {
  boots  = 1
  repeat = 1
  warmup = 0
  matrix {
    targets   = [target.x86]
    kernels   = [kernel.cfs_61, kernel.eevdf_612]
    workloads = [workload.iperf.canary, workload.crunch.canary]
    baseline  = kernel.cfs_61
  }
  matrix {
    targets   = [target.malta]
    kernels   = [kernel.cfs_61]
    workloads = [workload.iperf.canary]
    baseline  = kernel.cfs_61
  }
}

# ------------------------------------------------------------ five real testbeds
# As a lab writes them: addresses, outlets and serials are this lab's own, so
# change them to yours. `kernsweep validate` accepts this without any device and
# without the images; `kernsweep plan overnight` says what is missing.

locals {
  images = "images"       # paths start at this file's directory
  tftp   = "192.168.1.99" # the controller: kernsweep serves the images of the plan there, on port 69
}

# ---- what several machines have in common

# A router with an SSH server of its time. The host key changes whenever the
# device is flashed, which a boot by kernsweep does.
class "router" {
  uses = ["lan0"] # one patch cable to the controller: never two at once
  ssh {
    user         = "root"
    algorithms   = "legacy"
    new_host_key = "after-boot"
  }
  timeouts {
    boot    = "4m" # TFTP, unpacking, a jffs2 scan
    silence = "90s"
  }
}

# A PC whose firmware boots from the network first. kernsweep answers its PXE
# requests beside the network's DHCP server, for this MAC address alone, and once
# the kernel was fetched the machine starts from its own disk again.
class "pxe" {
  arch = "amd64"
  ssh { user = "root" }
  boot "pxe" {
    tftp  = local.tftp
    proxy = true
  }
}

# ---- testbed 1: WL500GPv2, bcm47xx, little-endian MIPS, one core
# iperf from the controller to the device, 10 s, three times.

target "wl500gpv2" {
  class      = class.router
  arch       = "mipsle" # checked against an ELF header on the device
  host       = "192.168.1.1"
  known_good = kernel.cfs_2630 # what recovery and the end of a lane boot
  network { peer_address = local.tftp }
  # Stopped in its countdown by Ctrl-C on the console. The image is loaded into
  # memory and started from there: the flash stays as it is, and any other start
  # brings what stands in it. This kernel's command line is built in, so that no
  # nonce proves a boot, but a new boot_id, the release and the scheduler do.
  boot "cfe" {
    tftp   = local.tftp
    ipaddr = "192.168.1.1"
  }
  console "tcp" { address = "labpi:2001" } # ser2net in raw mode
  power "tasmota" { address = "plug1" }
}

# ---- testbed 2: AR2317, 180 MHz, 16 MB, big-endian MIPS
# iperf from the device to the controller, 60 s. The whole userland is in the
# kernel image, so nothing written there survives a boot.

target "ar2317" {
  class      = class.router
  arch       = "mips"
  known_good = kernel.cfs_2630
  scale      = 0.2 # fixed work is cut to a fifth, for all kernels alike
  ssh {
    host = "192.168.1.20"
    port = 22
  }
  boot "redboot" { # load by TFTP, exec with the command line; nothing goes to flash
    tftp   = local.tftp
    ipaddr = "192.168.1.20"
  }
  console "tcp" { address = "labpi:2002" }
  power "relay" { # a USB relay at the controller
    tool   = "usbrelay"
    device = "HURTM"
    outlet = "3" # text: a number is refused
  }
  timeouts { boot = "6m" }
}

kernel "cfs_2630" {
  scheduler = "cfs" # what the probe must find, whatever the name says
  release   = "2.6.30*"
  image "wl500gpv2" { kernel = "${local.images}/wl500gpv2-cfs.elf" } # for one target
  image "mips" { kernel = "${local.images}/ar2317-cfs.elf" }         # for an architecture
}

kernel "bfs_2630" {
  scheduler = "bfs"
  release   = "2.6.30*"
  image "wl500gpv2" { kernel = "${local.images}/wl500gpv2-bfs.elf" }
  image "mips" { kernel = "${local.images}/ar2317-bfs.elf" }
}

workload "iperf" "to_device" {
  tool     = "iperf2"
  server   = "target"
  duration = "10s"
}

workload "iperf" "from_device" {
  tool     = "iperf2"
  server   = "peer" # the controller listens, the device sends
  duration = "60s"
}

# ---- testbed 3: dual-core x86_64, six kernels
# Three float programs one after another, all at once, and all at once with a
# longer time slice. Mainline 2.6.21 has no such knob: its j3big is n/a.

target "dualcore" {
  class      = class.pxe
  known_good = kernel.mainline_2621
  host       = "192.168.1.30"
  settle     = "30s"                       # let the boot's own work end
  boot "pxe" { mac = "00:1a:4d:00:00:30" } # the rest is the class's
  console "tcp" { address = "labpi:2003" }
  power "http" { # a strip that no other driver knows
    on  = "http://strip1/outlet?2=ON"
    off = "http://strip1/outlet?2=OFF"
  }
}

kernel "mainline_2621" {
  scheduler = "o1"
  release   = "2.6.21.1" # text: as a number it would lose its spelling
  image "dualcore" { kernel = "${local.images}/bzImage-2.6.21.1" }
}

kernel "sd_046" {
  scheduler = "sd"
  release   = "2.6.21*-sd*046"
  image "dualcore" { kernel = "${local.images}/bzImage-2.6.21-sd046" }
}

kernel "sd_048" {
  scheduler = "sd"
  release   = "2.6.21*-sd*048"
  image "dualcore" { kernel = "${local.images}/bzImage-2.6.21.1-sd048" }
}

kernel "cfs_v6" {
  scheduler = "cfs"
  release   = "2.6.21-cfs-v6"
  image "dualcore" { kernel = "${local.images}/bzImage-2.6.21-cfs-v6" }
}

kernel "cfs_v7" {
  scheduler = "cfs"
  release   = "2.6.21.1-cfs-v7"
  image "dualcore" { kernel = "${local.images}/bzImage-2.6.21.1-cfs-v7" }
}

kernel "cfs_v9" {
  scheduler = "cfs"
  release   = "2.6.21.1-cfs-v9"
  image "dualcore" { kernel = "${local.images}/bzImage-2.6.21.1-cfs-v9" }
}

# The agent's own float programs. They need the Go agent, and so a kernel from
# 3.2 on: for the six above, plan prints n/a. Take it for kernels of today.
workload "crunch" "ltm" {
  work   = 60000 # about a minute of a 1 GHz CPU for each task
  sample = "10s"
  scenario "j1" { parallel = 1 }
  scenario "j3" { parallel = 3 }
  scenario "j3big" {
    parallel  = 3
    timeslice = "400ms" # through the running scheduler's own knob, read back
  }
}

# The lab's own three programs, where they are on the target: any kernel runs
# them. The script goes to the target's sh as it stands; $VAR is the shell's.
locals {
  ltm_all_at_once = <<-EOT
    cd /opt/ltm || exit 1
    ./LTMM & a=$!
    ./LTMB & b=$!
    ./LTBM & c=$!
    wait $a && wait $b && wait $c
    EOT
}

workload "exec" "ltm_programs" {
  duration = "10m" # expected: for the plan, and three times that is the deadline
  sample   = "10s"
  metrics  = { user = "rusage:user", wall = "rusage:elapsed" }
  primary  = "wall"
  scenario "j1" {
    script = "cd /opt/ltm && ./LTMM && ./LTMB && ./LTBM"
  }
  scenario "j3" {
    script = local.ltm_all_at_once
  }
  scenario "j3big" {
    script    = local.ltm_all_at_once
    timeslice = "400ms"
  }
}

# Twelve hours on one machine, so a sweep of its own.
sweep "ltm" {
  kernels = [
    kernel.mainline_2621, kernel.sd_046, kernel.sd_048,
    kernel.cfs_v6, kernel.cfs_v7, kernel.cfs_v9,
  ]
  baseline = kernel.mainline_2621
  boots    = 4
  repeat   = 1
  warmup   = 0
  matrix {
    targets   = [target.dualcore]
    workloads = [workload.exec.ltm_programs, workload.crunch.ltm]
  }
}

# ---- testbed 4: quad-core Q9650, kernbench, 2.6.35 against 2.6.35-ck1

target "quadcore" {
  class      = class.pxe
  host       = "192.168.1.40"
  known_good = kernel.mainline_2635
  settle     = "30s"
  boot "pxe" { mac = "00:1f:d0:00:00:40" }
  console "tcp" { address = "labpi:2004" }
  power "command" { # a USB power strip
    on  = ["sispmctl", "-q", "-o", "2"]
    off = ["sispmctl", "-q", "-f", "2"]
  }
}

kernel "mainline_2635" {
  scheduler = "cfs"
  release   = "2.6.35"
  image "quadcore" { kernel = "${local.images}/bzImage-2.6.35" }
}

kernel "ck1_2635" {
  scheduler = "bfs" # found by its banner and its rr_interval
  release   = "2.6.35-ck1"
  image "quadcore" { kernel = "${local.images}/bzImage-2.6.35-ck1" }
}

# The same tree, configuration and compiler for all kernels; each build starts
# from a clean tree in memory. A level is a scenario, so levels are never mixed.
workload "kernbench" "linux" {
  source   = "/usr/src/linux-2.6.35" # on the target
  config   = ["make", "O={build}", "defconfig"]
  duration = "2m" # expected, of one build
  scenario "single" { level = "single" }
  scenario "half" { level = "half" }
  scenario "optimal" { level = "optimal" }
  scenario "maximal" { level = "maximal" }
}

# ---- testbed 5: 64-thread server, wakeup latency while compiling, CFS and BFS

# A server without a serial cable: its management controller gives power and
# console. ipmitool takes the password from IPMI_PASSWORD (-E) too, so it stands
# neither here nor in the list of processes.

target "server1" {
  class      = class.pxe
  host       = "192.168.1.50"
  known_good = kernel.cfs_32
  settle     = "1m"
  boot "pxe" { mac = "0c:c4:7a:00:00:50" }
  console "command" {
    command = ["ipmitool", "-I", "lanplus", "-H", "bmc-server1", "-U", "lab", "-L", "OPERATOR", "-E", "sol", "activate"]
  }
  power "ipmi" {
    address      = "bmc-server1"
    user         = "lab"
    password_env = "IPMI_PASSWORD"
  }
  timeouts { # memory and disk controllers take their time
    boot    = "12m"
    silence = "3m"
  }
}

# 3.2 is the oldest kernel that runs the Go agent, which has the wakeup probe.
kernel "cfs_32" {
  scheduler = "cfs"
  release   = "3.2*"
  image "server1" { kernel = "${local.images}/bzImage-3.2" }
}

# A kernel that hangs while it boots is a result: the report shows "did not boot"
# with the console's last lines, and after two of them the rest is skipped.
kernel "bfs_32" {
  scheduler = "bfs"
  release   = "3.2*-ck1*"
  image "server1" { kernel = "${local.images}/bzImage-3.2-ck1" }
}

# The load is a kernel build in memory; the server unpacks the tree when it boots.
workload "latency" "compile" {
  schedule = "fast" # a wakeup every 10 to 20 ms; "historic" is every 100 ms to 2 s
  deadline = "30m"
  scenario "alone" { duration = "1m" }
  scenario "jx" { # as many jobs as CPUs; the trial lasts as long as the build
    load    = 1
    command = ["sh", "-c", "cd /dev/shm/linux && make -s clean && make -s -j{jobs}"]
  }
  scenario "x2" { # twice as many
    load    = 2
    command = ["sh", "-c", "cd /dev/shm/linux && make -s clean && make -s -j{jobs}"]
  }
}

# ---- one night over the others
# A matrix is the product of its lists; its own kernels and baseline stand above
# the sweep's. `run overnight --target ar2317` takes one machine of it.

sweep "overnight" {
  kernels  = [kernel.cfs_2630, kernel.bfs_2630]
  baseline = kernel.cfs_2630
  boots    = 5 # of each kernel on each target: the sample that statistics need
  repeat   = 3 # trials of each cell inside one boot

  # What the night is to decide, said beforehand. With 5 boots up to 6 comparisons
  # can be decided; the others have an interval and no verdict.
  primary = [
    "iperf.to_device", # on two targets
    "kernbench.linux.half", "kernbench.linux.optimal",
    "latency.compile.jx", "latency.compile.x2",
  ]

  # boots      = "auto"    # at least 5, then until every primary interval is ±half_width
  # half_width = "1%"      # also what a verdict takes for narrow enough
  # max_boots  = 15        # of boots = "auto"
  # effect     = "2%"      # smallest change that matters (default: 1%, or the noise floor)
  # order      = "blocked" # where changing kernels is dear; order and kernel are one then

  matrix {
    targets   = [target.wl500gpv2]
    workloads = [workload.iperf.to_device]
  }
  matrix {
    targets   = [target.ar2317]
    workloads = [workload.iperf.from_device, workload.iperf.to_device]
  }
  matrix {
    targets   = [target.quadcore]
    workloads = [workload.kernbench.linux]
    kernels   = [kernel.mainline_2635, kernel.ck1_2635]
    baseline  = kernel.mainline_2635
  }
  matrix {
    targets   = [target.server1]
    workloads = [workload.latency.compile]
    kernels   = [kernel.cfs_32, kernel.bfs_32]
    baseline  = kernel.cfs_32
  }
}
