package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/console"
)

// CFE loads a kernel by TFTP from Broadcom's Common Firmware Environment and
// starts it from memory (CFE functional specification, "boot"; seen on 1.0.37 of
// WL-500gP V2). Flash is written only with flash = true.
type CFE struct {
	Netload
	Loader
	loaderNet
	Device       string `hcl:"device,optional" doc:"the loader's network device (default eth0)"`
	Network      string `hcl:"network,optional" doc:"\"static\" (default) or \"dhcp\""`
	How          string `hcl:"how,optional" doc:"\"elf\" or \"raw\" (default: by the image's first bytes)"`
	LoadAddr     string `hcl:"load_addr,optional" doc:"where a raw image goes (default 0x80001000)"`
	Compressed   bool   `hcl:"compressed,optional" doc:"the image is compressed and the loader unpacks it (-z)"`
	Cmdline      string `hcl:"cmdline,optional" doc:"\"none\" (default): the kernel has its own built in, so a boot cannot be proven by a nonce; \"args\": after the file name; \"env\": in the variable LINUX_CMDLINE. The last two need a kernel that asks CFE for it"`
	Flash        bool   `hcl:"flash,optional" doc:"write the image to flash with flash_command and start it from there: it stays, and flash wears out"`
	FlashCommand string `hcl:"flash_command,optional" doc:"the loader's command, FILE stands for the image: \"flash -noheader FILE flash1.trx\""`
}

var cfeKind = loaderKind{
	name:   "CFE",
	prompt: `CFE>`,
	keys:   "\x03",
	line:   250,
	begin:  regexp.MustCompile(`(?m)^CFE version |Common Firmware Environment|^Initializing Arena|^Init Arena|^Decompressing\.\.\.`),
	sync:   `ks%s`,
	answer: `(?i)(?:invalid|unknown)[^\n]*ks%[1]s|ks%[1]s[^\n]*(?:invalid|not found)`,
}

// What CFE says (its main/cfe_main.c, ui/ui_command.c, main/cfe_error.c).
var (
	cfeStatus = regexp.MustCompile(`\*\*\* command status = (-?\d+)`)
	cfeBad    = regexp.MustCompile(`(?i)^could not|^invalid|^\*\*\* command status = -|not been configured|timeout`)
	cfeFormat = regexp.MustCompile(`(?i)\belf\b|endian|\bMIPS\b|\bDRAM\b|checksum|decompress|status = -(?:1[1-7]|3[34])\b`)
	cfeNoFile = regexp.MustCompile(`(?i)file not found|status = -18\b`)
)

// Check refuses what cannot work.
func (c *CFE) Check() error {
	if err := errors.Join(c.Netload.check(), c.Loader.check(), c.loaderNet.check()); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{"", "dhcp", "static"}, c.Network):
		return fmt.Errorf("network = %q: want static or dhcp", c.Network)
	case c.Network == "dhcp" && c.Address != "":
		return errors.New("network = \"dhcp\" and ipaddr exclude each other")
	case !slices.Contains([]string{"", "elf", "raw"}, c.How):
		return fmt.Errorf("how = %q: want elf or raw", c.How)
	case !slices.Contains([]string{"", "none", "args", "env"}, c.Cmdline):
		return fmt.Errorf("cmdline = %q: want none, args or env", c.Cmdline)
	case c.LoadAddr != "" && !hexText.MatchString(c.LoadAddr):
		return fmt.Errorf("load_addr = %q: want a hexadecimal number, as 0x80001000", c.LoadAddr)
	case c.Flash != (c.FlashCommand != ""):
		return errors.New("flash = true and flash_command go together: flash is written only by a command that the block spells out")
	case c.Flash && !strings.Contains(c.FlashCommand, "FILE"):
		return fmt.Errorf("flash_command = %q does not say FILE", c.FlashCommand)
	case c.Flash && c.passes():
		return errors.New("a kernel in flash gets no command line: flash and cmdline exclude each other")
	}
	return nil
}

// passes says that the kernel gets a command line.
func (c *CFE) passes() bool { return c.Cmdline == "args" || c.Cmdline == "env" }

// Traits of the method. What is in flash stays there.
func (c *CFE) Traits() targets.BootTraits {
	return targets.BootTraits{Cmdline: c.passes(), Image: true, Console: true, Returns: !c.Flash}
}

// Notes tells what happened at the newest boot.
func (c *CFE) Notes() []string { return slices.Concat(c.Loader.notes, c.Netload.Notes()) }

// Boot brings the target to its loader, loads k and starts it.
func (c *CFE) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	if k.Image.Initrd != "" || k.Image.DTB != "" {
		return errors.New("CFE loads one file: build the initrd into the kernel")
	}
	elf, err := startsWith(k.Image.Kernel, "\x7fELF")
	if err != nil {
		return err
	}
	names, err := c.publish(ctx, t, k)
	if err != nil {
		return err
	}
	if err := checkBlocks(cfeKind, c.sizes.Kernel); err != nil {
		return err
	}
	return c.session(ctx, t, cfeKind, func(d *console.Dialogue, tap *targets.Tap) error {
		if err := c.network(ctx, d); err != nil {
			return err
		}
		if c.passes() {
			c.note("the command line is handed over by cmdline = %q, which only some kernels read", c.Cmdline)
		}
		if c.Cmdline == "env" {
			if err := c.run(ctx, d, `setenv LINUX_CMDLINE "`+k.Args()+`"`); err != nil {
				return err
			}
		}
		if c.Flash {
			return c.flash(ctx, t, d, tap, names.Kernel, k)
		}
		return c.start(ctx, t, d, tap, k, c.bootCommand(names.Kernel, elf, k))
	})
}

// startsWith looks at a file's first bytes.
func startsWith(path, magic string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, len(magic))
	n, _ := f.Read(head) // a short file does not begin so
	return string(head[:n]) == magic, nil
}

// network sets the loader's address.
func (c *CFE) network(ctx context.Context, d *console.Dialogue) error {
	device := c.Device
	if device == "" {
		device = "eth0"
	}
	switch {
	case c.Network == "dhcp":
		return c.run(ctx, d, "ifconfig "+device+" -auto")
	case c.Address == "":
		return nil // it has one from its nvram
	}
	line := "ifconfig " + device + " -addr=" + c.Address + " -mask=" + c.mask()
	if c.Gateway != "" {
		line += " -gw=" + c.Gateway
	}
	return c.run(ctx, d, line)
}

// run gives a command and reads its status; one without a status that does not
// complain is good.
func (c *CFE) run(ctx context.Context, d *console.Dialogue, line string) error {
	said, err := d.Command(ctx, line, 2*time.Minute, nil)
	if err != nil {
		return err
	}
	if m := cfeStatus.FindStringSubmatch(said); m != nil && m[1] == "0" || m == nil && !cfeBad.MatchString(said) {
		return nil
	}
	return fmt.Errorf("%.100q: %s", line, complaint(said, cfeBad))
}

// bootCommand loads and starts in one: this loader's own "go" starts from flash.
func (c *CFE) bootCommand(name string, elf bool, k targets.Kernel) string {
	how := c.How
	if how == "" {
		how = "raw"
		if elf {
			how = "elf"
		}
	}
	line := "boot -tftp -" + how
	if c.Compressed {
		line += " -z"
	}
	if how == "raw" {
		addr := c.LoadAddr
		if addr == "" {
			addr = "0x80001000"
		}
		room := c.sizes.Kernel
		if c.Compressed {
			room *= 8 // what it unpacks to
		}
		line += " -addr=" + addr + " -max=" + hexadecimal((room+0xffff)&^0xffff)
	}
	line += " " + c.TFTP + ":" + name
	if c.Cmdline == "args" {
		line += ` "` + k.Args() + `"`
	}
	return line
}

// start gives the command that loads and starts, and reads what comes of it.
func (c *CFE) start(ctx context.Context, t *targets.Target, d *console.Dialogue, tap *targets.Tap, k targets.Kernel, line string) error {
	if c.passes() && strings.Contains(k.Args(), `"`) {
		return &finalError{fmt.Errorf("CFE cannot hand over a command line with quotation marks: %s", k.Args())}
	}
	refused, err := launch(ctx, t, d, tap, start{command: line, within: 2 * time.Minute,
		good: regexp.MustCompile(`^Starting program at`), bad: cfeBad, again: cfeKind.begin})
	switch {
	case err != nil:
		return err
	case refused == "":
		return nil
	case cfeNoFile.MatchString(refused):
		return &finalError{fmt.Errorf("the TFTP server at %s does not give the file: %s", c.TFTP, refused)}
	case cfeFormat.MatchString(refused):
		return &targets.BootError{Kernel: k.Name, Stage: targets.StageRefused, Err: fmt.Errorf("CFE does not start it (%s): %s", line, refused)}
	}
	return fmt.Errorf("%.100q: %s", line, refused)
}

// flashTime bounds a flash write.
const flashTime = 10 * time.Minute

// flash writes the image and starts it from flash.
func (c *CFE) flash(ctx context.Context, t *targets.Target, d *console.Dialogue, tap *targets.Tap, name string, k targets.Kernel) error {
	line := strings.ReplaceAll(c.FlashCommand, "FILE", c.TFTP+":"+name)
	// Half a write ruins the target: it goes on when the boot is given up.
	wctx, stop := targets.Lasting(ctx, flashTime)
	defer stop()
	if err := c.run(wctx, d, line); err != nil {
		return &finalError{fmt.Errorf("writing flash, which may be half done now: %w", err)}
	}
	c.note("flash was written: %s", line)
	err := c.start(ctx, t, d, tap, k, "go")
	if kernel := (*targets.BootError)(nil); err != nil && !errors.As(err, &kernel) {
		return &finalError{fmt.Errorf("flash was written and is not written again: %w", err)}
	}
	return err
}
