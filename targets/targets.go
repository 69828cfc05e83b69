// Package targets holds the contracts between the orchestrator and the machines
// under test, and the one place that judges whether a boot counts (Boot).
// Drivers live in the folders below; each is a struct that config decodes from
// testbeds.hcl by its `hcl` tags, so drivers import no HCL.
package targets

import (
	"context"
	"io"
	"time"
)

// Target is one machine: the unit of exclusive use.
type Target struct {
	Name    string
	Arch    string // GOARCH; "" until a probe of an ELF header decides
	SSH     SSH
	Boot    Booter
	Power   Power   // nil: none
	Console Console // nil: none
	Network Network
	Timeout Timeouts
	Ready   string // regular expression on the console that says SSH may be tried; "" = none

	Dial  DialFunc  // set by the composition root
	Serve ServeFunc // set by the composition root; nil: nothing is served
	// Agent gives the agent's bytes for a GOARCH, for a boot method that needs a
	// program on the target; set by the composition root, nil: none can be had.
	Agent func(goarch string) ([]byte, error)
	Held  Conn // link to the running system, nil while none; Boot closes and replaces it

	watch *watch // of the console, from one Boot to the next; nil while none
}

// SSH says how to log in to a target.
type SSH struct {
	Host         string        `hcl:"host,optional" doc:"name or address; may be an alias of ~/.ssh/config"`
	Port         int           `hcl:"port,optional" doc:"TCP port (default 22, or what ~/.ssh/config says)"`
	User         string        `hcl:"user,optional" doc:"login name (default: what ~/.ssh/config says, else the caller's)"`
	Key          string        `hcl:"key,optional" doc:"file of a private key; without it the SSH agent and ~/.ssh/config decide"`
	PasswordEnv  string        `hcl:"password_env,optional" doc:"name of the environment variable that holds the password"`
	PasswordFile string        `hcl:"password_file,optional" doc:"file whose first line is the password"`
	Algorithms   string        `hcl:"algorithms,optional" doc:"\"legacy\" also offers SHA-1, CBC and group1 for old devices"`
	Via          []string      `hcl:"via,optional" doc:"jump hosts in order, each [user@]host[:port]; they are offered key, the SSH agent's keys and those of ~/.ssh/config"`
	HostKeys     []string      `hcl:"host_keys,optional" doc:"pinned host keys, as in a .pub file; replaces known_hosts for this target"`
	NewHostKey   string        `hcl:"new_host_key,optional" doc:"\"reject\" (default) or \"after-boot\": accept a changed key once after a boot that kernsweep made"`
	KnownHosts   string        `hcl:"known_hosts,optional" doc:"file to check host keys against (default ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts)"`
	ConfigFile   string        `hcl:"config,optional" doc:"ssh_config file; \"none\" reads none"`
	Keepalive    time.Duration `hcl:"keepalive,optional" doc:"interval of keepalives outside trials (default 15s; a reply is due within the same time, 3 may be missed)"`
	Sessions     int           `hcl:"sessions,optional" doc:"sessions at once per connection (default 10, lowered when the server refuses)"`
	Path         string        // directories, joined by colons, before PATH for every command; "" = none
}

// Network says how a target and its peer reach each other for a network
// workload. Empty fields are derived: Address from SSH, Peer from the SSH
// connection as the target sees it.
type Network struct {
	Address string      `hcl:"address,optional" doc:"address of the target as its peers see it (default: ssh.host)"`
	Peer    string      `hcl:"peer_address,optional" doc:"address of the controller as the target sees it (default: where the SSH connection comes from)"`
	Ports   map[int]int // port on the target -> port at Address, where they differ; filled by drivers
	Clock   string      // "" = the seconds of both ends agree; "guest" = only the target's clock counts (QEMU -icount)
}

// Timeouts are deadlines of the boot phases, from power-on or the request.
type Timeouts struct {
	Down    time.Duration `hcl:"down,optional" doc:"until the old system is gone (default 2m)"`
	Boot    time.Duration `hcl:"boot,optional" doc:"until the new system answers over SSH (default 5m)"`
	Silence time.Duration `hcl:"silence,optional" doc:"a console silent this long while booting is a hang (default 60s)"`
	Exec    time.Duration `hcl:"exec,optional" doc:"for a small command (default 30s)"`
}

// WithDefaults fills what is not set; the defaults are stated here only.
func (o Timeouts) WithDefaults() Timeouts {
	for _, d := range []struct {
		at   *time.Duration
		unit time.Duration
	}{
		{&o.Down, 2 * time.Minute}, {&o.Boot, 5 * time.Minute},
		{&o.Silence, time.Minute}, {&o.Exec, 30 * time.Second},
	} {
		if *d.at <= 0 {
			*d.at = d.unit
		}
	}
	return o
}

// Kernel is one bootable variant, resolved for one target.
type Kernel struct {
	Name      string
	Scheduler string // name the probe must find: "cfs", "eevdf", "bfs", …; "" = any
	Release   string // glob that uname -r must match; "" = any
	Cmdline   string // wanted additions to the command line
	Nonce     string // set by Boot: an argument that only this boot carries
	Image     Image
}

// Image names the files of a kernel for one target. Paths are absolute.
type Image struct {
	Kernel  string `hcl:"kernel,optional" doc:"kernel image file"`
	Initrd  string `hcl:"initrd,optional" doc:"initial RAM disk; several, joined by commas, are concatenated"`
	DTB     string `hcl:"dtb,optional" doc:"device tree"`
	Cmdline string `hcl:"cmdline,optional" doc:"command line of this image, before the kernel's own additions"`
}

// Args is the whole command line: image, kernel, nonce.
func (k Kernel) Args() string {
	s := ""
	for _, p := range []string{k.Image.Cmdline, k.Cmdline, k.Nonce} {
		if p == "" {
			continue
		}
		if s != "" {
			s += " "
		}
		s += p
	}
	return s
}

// Booter starts a kernel; it never judges. It returns once the start was asked
// for. A *BootError is a fact about the kernel, any other error is
// infrastructure. The target's Held connection may be used, and is closed by Boot.
type Booter interface {
	Boot(ctx context.Context, t *Target, k Kernel) error
}

// Power switches a target's supply.
type Power interface {
	Set(ctx context.Context, on bool) error
}

// Console opens a target's serial console as a byte stream.
type Console interface {
	Open(ctx context.Context) (io.ReadWriteCloser, error)
}

// Outlet is a power driver that knows which outlet of which shared strip it
// switches. Two targets with the same one are an error, and commands to one strip
// are given one after the other.
type Outlet interface {
	Outlet() (strip, outlet string) // spelt alike for alike; "" = a supply of its own
}

// Breaker is an open console that can send a serial break, which Linux takes for
// the magic SysRq key (kernel Documentation/admin-guide/sysrq.rst).
type Breaker interface {
	Break(ctx context.Context) error
}

// Traits are what a boot method says of itself. A Booter without this interface
// has none of them.
type Traits interface {
	Traits() BootTraits
}

// BootTraits of a boot method.
type BootTraits struct {
	Cmdline   bool // it hands Kernel.Args, and so the nonce, to the kernel
	Image     bool // it needs Kernel.Image
	Running   bool // it asks the running system, so Boot logs in there first
	OnlyOnce  bool // it cannot start anything: one boot a run ("none")
	Console   bool // it reads and types on the console, so the target needs one
	Returns   bool // it starts a kernel once: any other start brings the device's own default
	Local     bool // boots load the controller's CPUs, so they are gated there
	Emulated  bool // the machine is emulated
	HostBound bool // its figures depend on the controller's load: not comparable
}

// TraitsOf returns b's traits.
func TraitsOf(b Booter) BootTraits {
	if t, ok := b.(Traits); ok {
		return t.Traits()
	}
	return BootTraits{}
}

// Runner is a driver that starts programs of the controller. They are looked
// for before a run, so that nobody leaves a lab whose programs are missing.
type Runner interface {
	Programs(t *Target) []string // names or paths, as exec.LookPath takes them
}

// Networker is a driver that knows its target's network.
type Networker interface {
	Network() Network
}

// Noter is a boot method, or an open console, with facts for the boot's record.
type Noter interface {
	Notes() []string
}

// Settler is a boot method after which the verified system still has work of its
// own to end, such as formatting its flash, before it may be measured. An error
// is infrastructure, unless it is a *BootError.
type Settler interface {
	Settle(ctx context.Context, t *Target, conn Conn, note func(string)) error
}

// Closer is a driver that holds something until the lane ends: a process, a socket.
type Closer interface {
	Close() error
}
