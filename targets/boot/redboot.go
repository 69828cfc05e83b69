package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/console"
)

// RedBoot loads a kernel by TFTP and starts it from memory with exec (RedBoot
// User's Guide, chapter 2; seen on the AR2317). It is reached over the console, or
// over its own TCP port in the seconds before it starts what is in flash.
type RedBoot struct {
	Netload
	Loader
	loaderNet
	Telnet      string `hcl:"telnet,optional" doc:"host:port of the loader's own command line, as 192.168.1.1:9000: used instead of the console"`
	LoadAddr    string `hcl:"load_addr,optional" doc:"where a raw image goes (default 0x80041000); an ELF file says so itself"`
	Entry       string `hcl:"entry,optional" doc:"where it is entered (default: what load says)"`
	InitrdAddr  string `hcl:"initrd_addr,optional" doc:"where an initrd goes"`
	LoadOptions string `hcl:"load_options,optional" doc:"more for load, as \"-d\" for a gzip'd image"`
	ExecOptions string `hcl:"exec_options,optional" doc:"more for exec, as \"-w 1\""`
}

var redbootKind = loaderKind{
	name:   "RedBoot",
	prompt: `(?:RedBoot|DD-WRT)>`,
	keys:   "\x03",
	line:   250, // CYGPKG_REDBOOT_MAX_CMD_LINE is 256; a full line runs as it stands
	begin:  regexp.MustCompile(`(?m)RedBoot\(tm\)|== Executing boot script|^\+?Ethernet eth\d: MAC`),
	sync:   `ks%s`,
	answer: `(?i)(?:illegal|invalid|unknown)[^\n]*ks%s`,
}

// What RedBoot says (its load.c, misc, and exec of its MIPS port).
var (
	redbootRaw    = regexp.MustCompile(`Raw file loaded (0x[0-9a-fA-F]+)-(0x[0-9a-fA-F]+), assumed entry at (0x[0-9a-fA-F]+)`)
	redbootEntry  = regexp.MustCompile(`Entry point: (0x[0-9a-fA-F]+), address range: (0x[0-9a-fA-F]+)-(0x[0-9a-fA-F]+)`)
	redbootBad    = regexp.MustCompile(`(?i)can't |unrecognized |\*\* error|illegal|invalid|no entry point|timed out|failed|\berror\b|not allowed|unable`)
	redbootNoFile = regexp.MustCompile(`(?i)file not found|access violation`)
	redbootFormat = regexp.MustCompile(`(?i)elf|s-record|unrecognized|format|outside|not allowed|unexpected`)
)

// Check refuses what cannot work.
func (r *RedBoot) Check() error {
	if err := errors.Join(r.Netload.check(), r.Loader.check(), r.loaderNet.check()); err != nil {
		return err
	}
	if r.Telnet != "" {
		if h, p, err := net.SplitHostPort(r.Telnet); err != nil || h == "" || !isPort(p) {
			return fmt.Errorf("telnet = %q: want host:port, as 192.168.1.1:9000", r.Telnet)
		}
	}
	for name, a := range map[string]string{"load_addr": r.LoadAddr, "entry": r.Entry, "initrd_addr": r.InitrdAddr} {
		if a != "" && !hexText.MatchString(a) {
			return fmt.Errorf("%s = %q: want a hexadecimal number, as 0x80041000", name, a)
		}
	}
	if strings.ContainsAny(r.LoadOptions+r.ExecOptions, ";\r\n") {
		return errors.New("load_options and exec_options are options, not commands")
	}
	return nil
}

// Traits of the method.
func (r *RedBoot) Traits() targets.BootTraits {
	return targets.BootTraits{Cmdline: true, Image: true, Console: r.Telnet == "", Returns: true}
}

// Notes tells what happened at the newest boot.
func (r *RedBoot) Notes() []string { return slices.Concat(r.Loader.notes, r.Netload.Notes()) }

// Boot brings the target to its loader, loads k and starts it.
func (r *RedBoot) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	if k.Image.DTB != "" {
		return errors.New("RedBoot hands no device tree over: build it into the kernel")
	}
	if k.Image.Initrd != "" && r.InitrdAddr == "" {
		return errors.New("this kernel has an initrd: set initrd_addr")
	}
	names, err := r.publish(ctx, t, k)
	if err != nil {
		return err
	}
	if err := checkBlocks(redbootKind, r.sizes.Kernel, r.sizes.Initrd); err != nil {
		return err
	}
	if r.Telnet != "" {
		return r.overTelnet(ctx, t, k, names)
	}
	return r.session(ctx, t, redbootKind, func(d *console.Dialogue, tap *targets.Tap) error {
		line, err := r.load(ctx, d, k, names)
		if err != nil {
			return err
		}
		refused, err := launch(ctx, t, d, tap, start{command: line, within: 20 * time.Second,
			good: regexp.MustCompile(`^Now booting linux kernel|^Using base address`), bad: redbootBad, again: redbootKind.begin})
		return r.refusal(k, line, refused, err)
	})
}

func (r *RedBoot) refusal(k targets.Kernel, line, refused string, err error) error {
	if err != nil || refused == "" {
		return err
	}
	return &targets.BootError{Kernel: k.Name, Stage: targets.StageRefused, Err: fmt.Errorf("RedBoot does not start it (%.100s): %s", line, refused)}
}

// load sets the address, fetches the files and makes the command that starts.
func (r *RedBoot) load(ctx context.Context, d *console.Dialogue, k targets.Kernel, names netFiles) (string, error) {
	if err := r.network(ctx, d); err != nil {
		return "", err
	}
	exec := "exec"
	if r.ExecOptions != "" {
		exec += " " + r.ExecOptions
	}
	if names.Initrd != "" {
		if _, err := r.fetch(ctx, d, k, "-r -b "+r.InitrdAddr, names.Initrd, r.sizes.Initrd); err != nil {
			return "", err
		}
		exec += " -r " + r.InitrdAddr + " -s " + hexadecimal(r.sizes.Initrd)
	}
	elf, err := startsWith(k.Image.Kernel, "\x7fELF")
	if err != nil {
		return "", err
	}
	options := r.LoadOptions
	if !elf {
		addr := r.LoadAddr
		if addr == "" {
			addr = "0x80041000"
		}
		options = strings.TrimSpace(options + " -r -b " + addr)
	}
	entry, err := r.fetch(ctx, d, k, options, names.Kernel, r.sizes.Kernel)
	if err != nil {
		return "", err
	}
	if r.Entry != "" {
		entry = r.Entry
	}
	args, err := redbootQuote(k.Args())
	if err != nil {
		return "", err
	}
	return exec + " -c " + args + " " + entry, nil
}

// redbootQuote makes one word. RedBoot takes $ and + for the begin of a debugger's
// packet unless a backslash stands before, which it takes away.
func redbootQuote(s string) (string, error) {
	if strings.ContainsAny(s, `"\`) {
		return "", &finalError{fmt.Errorf("RedBoot cannot hand over a command line with quotation marks or backslashes: %s", s)}
	}
	return `"` + strings.NewReplacer("$", `\$`, "+", `\+`).Replace(s) + `"`, nil
}

// network sets the loader's address and the server's.
func (r *RedBoot) network(ctx context.Context, d *console.Dialogue) error {
	line := "ip_address -h " + r.TFTP
	if r.Address != "" && r.Telnet == "" { // over telnet the connection would break
		line = fmt.Sprintf("ip_address -l %s/%d -h %s", r.Address, r.bits(), r.TFTP)
	}
	said, err := d.Command(ctx, line, 30*time.Second, nil)
	if err != nil {
		return err
	}
	if redbootBad.MatchString(said) {
		return fmt.Errorf("%s: %s", line, complaint(said, redbootBad))
	}
	return nil
}

// fetch loads one file and returns its entry.
func (r *RedBoot) fetch(ctx context.Context, d *console.Dialogue, k targets.Kernel, options, name string, size int64) (string, error) {
	line := strings.Join(strings.Fields("load "+options+" -m tftp -h "+r.TFTP+" "+name), " ")
	said, err := d.Command(ctx, line, 2*time.Minute, nil)
	if err != nil {
		return "", err
	}
	if m := redbootRaw.FindStringSubmatch(said); m != nil {
		from, _ := strconv.ParseInt(m[1], 0, 64)
		to, _ := strconv.ParseInt(m[2], 0, 64)
		// The last address, in some versions the one behind it.
		if n := to - from; r.LoadOptions == "" && n != size && n != size-1 {
			return "", fmt.Errorf("%s: %d bytes were loaded of %d", line, n+1, size)
		}
		return m[3], nil
	}
	if m := redbootEntry.FindStringSubmatch(said); m != nil {
		return m[1], nil
	}
	what := complaint(said, redbootBad)
	switch {
	case redbootNoFile.MatchString(what):
		return "", &finalError{fmt.Errorf("the TFTP server at %s does not give the file: %s", r.TFTP, what)}
	case redbootFormat.MatchString(what):
		return "", &targets.BootError{Kernel: k.Name, Stage: targets.StageRefused, Err: fmt.Errorf("RedBoot does not load it (%s): %s", line, what)}
	}
	return "", fmt.Errorf("%s: %s", line, what)
}
