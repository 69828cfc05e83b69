package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"kernsweep/orchestrator"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// The steps of a rehearsal.
const (
	stepPrograms = "programs"
	stepReach    = "reach"
	stepConsole  = "console"
	stepTransfer = "transfer"
	stepAgent    = "agent"
	stepBoot     = "boot"
	stepPower    = "power"
	stepPanic    = "panic"
	stepHang     = "hang"
)

// advice is what to do about a step that failed with err: a command to give, or
// what to write into which block. It is never empty.
func (r *rehearsal) advice(step string, err error) string {
	var wrong *targets.OutletError
	var other *targets.OtherMachineError
	var link *targets.LinkError
	switch {
	case errors.As(err, &other):
		return fmt.Sprintf("another machine answers under this address: correct host in the ssh block of target %q, or take the other one off the network", r.t.Name)
	case errors.As(err, &wrong):
		return fmt.Sprintf("look which cable is in that outlet, then correct outlet in the power block of target %q", r.t.Name)
	case r.down == notBack:
		return r.stranded()
	case errors.As(err, &link) && !r.local():
		return r.linkAdvice(link) + r.alsoPower(err)
	}
	switch step {
	case stepPrograms:
		return r.programAdvice(err)
	case stepReach:
		return r.reachAdvice()
	case stepConsole:
		return r.consoleAdvice(err)
	case stepTransfer:
		return fmt.Sprintf("make room in /tmp there (%s), and look at the link: %s", r.cmd("exec", "-- df /tmp"), r.cmd("exec", "-- cat /proc/net/dev"))
	case stepAgent:
		return r.agentAdvice(err)
	case stepBoot:
		return r.bootAdvice(err)
	case stepPower:
		return r.powerAdvice()
	case stepPanic, stepHang:
		return r.faultAdvice(step)
	}
	return fmt.Sprintf("give %s and watch", r.cmd("console", ""))
}

// cmd is a command about the target, to be pasted.
func (r *rehearsal) cmd(name, rest string) string {
	k := r.o.Kernsweep
	if k == "" {
		k = "kernsweep"
	}
	return strings.TrimSpace(k + " " + name + " " + r.t.Name + " " + rest)
}

// block names a block of the target's, as the configuration has it.
func (r *rehearsal) block(name string) string {
	return fmt.Sprintf("the %s block of target %q", name, r.t.Name)
}

func (r *rehearsal) programAdvice(err error) string {
	var missing *exec.Error
	if errors.As(err, &missing) {
		return fmt.Sprintf("install it on the controller (%s), or correct its path in the blocks of target %q", orchestrator.InstallHint(missing.Name), r.t.Name)
	}
	return fmt.Sprintf("correct the program's path in the boot, power or console block of target %q", r.t.Name)
}

func (r *rehearsal) reachAdvice() string {
	switch {
	case r.local() && r.o.Known == nil:
		return fmt.Sprintf("write known_good = kernel.NAME into target %q, or give --kernel NAME", r.t.Name)
	case r.local():
		return "boot it by hand and read its console: " + r.cmd("boot", r.o.Known.Name)
	}
	return fmt.Sprintf("its login shell must run commands by /bin/sh: %s; else name another user in %s", r.cmd("exec", "-- true"), r.block("ssh"))
}

// linkAdvice is about the way to the target.
func (r *rehearsal) linkAdvice(l *targets.LinkError) string {
	s := r.t.SSH
	where := s.Host
	if l.Hop != "" {
		return fmt.Sprintf("log in to the jump host yourself (ssh %s), then correct via in %s", l.Hop, r.block("ssh"))
	}
	low := strings.ToLower(l.Error())
	switch {
	case strings.Contains(low, "host key"):
		return fmt.Sprintf("if the device was flashed, forget its old key (ssh-keygen -R %s) and log in once; where every boot makes a new one, write new_host_key = \"after-boot\" into %s", where, r.block("ssh"))
	case strings.Contains(low, "algorithm"):
		return fmt.Sprintf("write algorithms = \"legacy\" into %s", r.block("ssh"))
	case l.Phase == "log in" || strings.Contains(low, "authenticate"):
		return fmt.Sprintf("correct user, and key or password_env, in %s; ssh -v %s shows what it takes", r.block("ssh"), where)
	case l.Phase == "connect":
		return fmt.Sprintf("ping %s; is it on and plugged in? Then correct host and port in %s%s", where, r.block("ssh"), r.switchAdvice())
	case l.Phase == "handshake":
		return fmt.Sprintf("wait until it is up, or restart its SSH server; is port %d of %s SSH at all? ssh -v %s", s.Port, where, where)
	}
	return fmt.Sprintf("the link broke: %s, and look for errors of the interface: %s", r.cmd("-v exec", "-- true"), r.cmd("exec", "-- cat /proc/net/dev"))
}

func (r *rehearsal) switchAdvice() string {
	if r.t.Power == nil {
		return ""
	}
	return "; it may only be off: " + r.cmd("power", "on")
}

// alsoPower adds what to do when the supply does not obey either.
func (r *rehearsal) alsoPower(err error) string {
	if r.t.Power == nil || !strings.Contains(err.Error(), "power on: ") {
		return ""
	}
	return fmt.Sprintf("; and correct %s, or look at the plug itself", r.block("power"))
}

func (r *rehearsal) consoleAdvice(err error) string {
	low := strings.ToLower(err.Error())
	switch {
	case strings.Contains(low, "does not open"):
		return r.consoleOpens()
	case strings.Contains(low, "cannot be written"):
		return fmt.Sprintf("log in as root: user = \"root\" in %s", r.block("ssh"))
	case strings.Contains(low, "heard instead"):
		return fmt.Sprintf("something else is heard: correct baud in %s, or the port: is this the console of another device? %s", r.block("console"), r.cmd("console", ""))
	}
	return fmt.Sprintf("the kernel must write to that port (console=ttyS0,115200 on its command line: cmdline in its kernel block), and the cable belong to this target; see what comes: %s", r.cmd("console", ""))
}

func (r *rehearsal) consoleOpens() string {
	switch kind := r.o.Target.ConsoleKind; kind {
	case "serial":
		return fmt.Sprintf("correct the device in %s; who has it open: fuser -v DEVICE; may you: groups must say dialout", r.block("console"))
	case "tcp", "telnet":
		return fmt.Sprintf("correct address in %s, and see that the console server listens and nobody else is on that line: nc ADDRESS PORT", r.block("console"))
	case "command", "ssh":
		return fmt.Sprintf("give its command by hand, then correct %s", r.block("console"))
	default:
		return fmt.Sprintf("correct %s (console %q); %s shows what happens", r.block("console"), kind, r.cmd("-v console", ""))
	}
}

func (r *rehearsal) agentAdvice(err error) string {
	var not *workloads.UnavailableError
	if errors.As(err, &not) && r.o.Target.Agent == "go" {
		return fmt.Sprintf("take agent = \"go\" out of target %q: the shell agent needs least; or make room: %s", r.t.Name, r.cmd("exec", "-- df"))
	}
	if strings.Contains(err.Error(), "another architecture") || strings.Contains(err.Error(), "there is no agent for") {
		return fmt.Sprintf("correct arch in target %q: %s shows what it is", r.t.Name, r.cmd("target probe", ""))
	}
	return fmt.Sprintf("make room in /tmp or /dev/shm there (%s), or write agent = \"shell\" into target %q", r.cmd("exec", "-- df"), r.t.Name)
}

// booted names the kernel of the step "boot".
func (r *rehearsal) booted() string {
	switch {
	case r.o.Kernel != nil:
		return r.o.Kernel.Name
	case r.o.Known != nil:
		return r.o.Known.Name
	}
	return "KERNEL"
}

func (r *rehearsal) bootAdvice(err error) string {
	k := r.booted()
	watch := "boot it by hand and watch: " + r.cmd("boot", k)
	var crash *targets.BootError
	if !errors.As(err, &crash) {
		switch {
		case errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "within"):
			return fmt.Sprintf("give it longer: timeouts { boot = \"10m\" } in target %q; %s", r.t.Name, watch)
		case strings.Contains(err.Error(), "TFTP"):
			return fmt.Sprintf("correct tftp (an address of this controller) in %s, and let UDP port 69 through; %s", r.block("boot"), watch)
		}
		return fmt.Sprintf("correct %s (boot %q); %s", r.block("boot"), r.o.Target.BootKind, watch)
	}
	if crash.Kernel != "" {
		k = crash.Kernel
	}
	switch {
	case strings.Contains(crash.Stage, "scheduler"):
		return fmt.Sprintf("correct scheduler in kernel %q to what was found, or its image", k)
	case strings.Contains(crash.Stage, "wrong kernel"):
		return fmt.Sprintf("correct release in kernel %q to what uname -r says, or its image; does the loader start what it was given? %s", k, watch)
	case strings.Contains(crash.Stage, "root"):
		return fmt.Sprintf("correct root= in cmdline, or initrd, in the image block of kernel %q", k)
	case strings.Contains(crash.Stage, "hang"), strings.Contains(crash.Stage, "silen"):
		return fmt.Sprintf("if it is only slow, timeouts { silence = \"3m\", boot = \"10m\" } in target %q; %s", r.t.Name, watch)
	}
	return fmt.Sprintf("the kernel itself failed (%s): read its console (%s --console), then correct the image of kernel %q; %s", crash.Stage, r.cmd("target doctor", ""), k, watch)
}

func (r *rehearsal) powerAdvice() string {
	if r.local() {
		return "its process did not end or begin: " + r.cmd("-v boot", r.booted())
	}
	return fmt.Sprintf("%s, and look at the device: does the right one go dark? Correct %s; a PC that stays off afterwards needs \"power on after AC loss\" in its firmware; a slow one timeouts { boot = \"10m\" }",
		r.cmd("power", "off"), r.block("power"))
}

func (r *rehearsal) faultAdvice(step string) string {
	if step == stepPanic {
		return fmt.Sprintf("the kernel must obey SysRq and the login be root: %s; without a way back write panic=10 into cmdline of the kernel, or a power block into target %q", r.cmd("exec", "-- cat /proc/sys/kernel/sysrq"), r.t.Name)
	}
	return fmt.Sprintf("log in as root (user in %s), and give target %q a power block: nothing else ends a hang for sure", r.block("ssh"), r.t.Name)
}

// stranded is about a target that did not come back.
func (r *rehearsal) stranded() string {
	if r.t.Power == nil {
		return fmt.Sprintf("switch it off and on at the device now; then write a power block into target %q, and panic=10 into cmdline of its kernels", r.t.Name)
	}
	return fmt.Sprintf("bring it back by hand now: %s; then see why its power did not: is the outlet its own, is known_good what it starts with?", r.cmd("power", "cycle"))
}
