package boot

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/console"
)

// UBoot loads a kernel by TFTP from U-Boot's command line on the console and
// starts it from memory (U-Boot doc/usage/cmd). Nothing is written to flash and no
// environment is saved.
type UBoot struct {
	Netload
	Loader
	loaderNet
	Setup      []string `hcl:"setup,optional" doc:"commands before the network is used, as [\"pci enum\"] or [\"usb start\"]"`
	Network    string   `hcl:"network,optional" doc:"\"dhcp\", or \"static\" (default): ipaddr below, or else what the loader's environment has"`
	KernelAddr string   `hcl:"kernel_addr,optional" doc:"where the kernel is loaded, hexadecimal (default: $kernel_addr_r, or else $loadaddr, of the loader's environment)"`
	InitrdAddr string   `hcl:"initrd_addr,optional" doc:"where the initrd is loaded (default: $ramdisk_addr_r)"`
	DTBAddr    string   `hcl:"dtb_addr,optional" doc:"where the device tree is loaded (default: $fdt_addr_r)"`
	How        string   `hcl:"how,optional" doc:"bootm, bootz, booti, zboot, bootelf or go (default: by the kernel image's format)"`
	Commands   []string `hcl:"commands,optional" doc:"what to type instead of loading and starting; the last one starts. The loader expands $${ks_kernel}, $${ks_initrd}, $${ks_dtb} (file names), $${ks_args} and $${serverip}"`
}

var ubootKind = loaderKind{
	name: "U-Boot",
	// "=> ", "U-Boot> ", "u-boot>", "ath> ", "Marvell>> ", "maltael # ", "(IPQ) # ", "MT7621 # ", "VoCore > "
	prompt: `=>|[A-Za-z0-9(][A-Za-z0-9()_.-]{0,30}>>?|[A-Za-z0-9(][A-Za-z0-9()_. -]{0,30} (?:>>?|#)`,
	keys:   " \x03",
	line:   240, // CONFIG_SYS_CBSIZE is 256 or more
	begin:  regexp.MustCompile(`(?m)^\s*U-[Bb]oot(?: SPL| TPL)? \d|^Ralink UBoot Version|^Please choose the operation|^\W*(?:[Aa]utoboot|Hit .*key|(?:Press|Type) .* to (?:stop|abort|enter|interrupt))|^(?:DRAM|NAND|Flash|Board): `),
	sync:   `ks%s`, // a shell answers echo too
	answer: `(?i)unknown command[^\n]*ks%s`,
}

// Check refuses what cannot work.
func (u *UBoot) Check() error {
	if err := errors.Join(u.Netload.check(), u.Loader.check(), u.loaderNet.check()); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{"", "dhcp", "static"}, u.Network):
		return fmt.Errorf("network = %q: want dhcp or static", u.Network)
	case u.Network == "dhcp" && u.Address != "":
		return errors.New("network = \"dhcp\" and ipaddr exclude each other")
	case !slices.Contains([]string{"", "bootm", "bootz", "booti", "zboot", "bootelf", "go"}, u.How):
		return fmt.Errorf("how = %q: want bootm, bootz, booti, zboot, bootelf or go", u.How)
	}
	if len(u.Commands) > 0 && u.How+u.KernelAddr+u.InitrdAddr+u.DTBAddr != "" {
		return errors.New("commands says everything that is typed: how and the addresses have no effect beside it, leave them out")
	}
	for name, a := range map[string]string{"kernel_addr": u.KernelAddr, "initrd_addr": u.InitrdAddr, "dtb_addr": u.DTBAddr} {
		if a != "" && !hexText.MatchString(a) {
			return fmt.Errorf("%s = %q: want a hexadecimal number, as 0x82000000", name, a)
		}
	}
	for _, c := range slices.Concat(u.Setup, u.Commands) {
		if strings.TrimSpace(c) == "" || strings.ContainsAny(c, "\r\n") {
			return fmt.Errorf("the command %q is not one line", c)
		}
	}
	return nil
}

var hexText = regexp.MustCompile(`^(?:0[xX])?[0-9a-fA-F]{1,16}$`)

// Traits of the method. "go" hands no command line over.
func (u *UBoot) Traits() targets.BootTraits {
	return targets.BootTraits{Cmdline: u.How != "go" && u.How != "bootelf" || len(u.Commands) > 0, Image: true, Console: true, Returns: true}
}

// Notes tells what happened at the newest boot.
func (u *UBoot) Notes() []string { return slices.Concat(u.Loader.notes, u.Netload.Notes()) }

// Boot brings the target to its loader, loads k and starts it.
func (u *UBoot) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	plan := ubootPlan{u: u, t: t, k: k}
	if err := plan.prepare(ctx); err != nil {
		return err
	}
	return u.session(ctx, t, ubootKind, func(d *console.Dialogue, tap *targets.Tap) error {
		plan.d, plan.tap = d, tap
		return plan.run(ctx)
	})
}

// ubootPlan is one boot.
type ubootPlan struct {
	u   *UBoot
	t   *targets.Target
	k   targets.Kernel
	how string
	d   *console.Dialogue
	tap *targets.Tap

	kernel, initrd, dtb fetched
}

// prepare does what needs no loader.
func (p *ubootPlan) prepare(ctx context.Context) error {
	p.how = p.u.How
	if p.how == "" && len(p.u.Commands) == 0 {
		var err error
		if p.how, err = ubootHow(p.k.Image.Kernel); err != nil {
			return err
		}
	}
	names, err := p.u.publish(ctx, p.t, p.k)
	if err != nil {
		return err
	}
	sizes := p.u.sizes
	p.kernel = fetched{name: names.Kernel, size: sizes.Kernel}
	p.initrd = fetched{name: names.Initrd, size: sizes.Initrd}
	p.dtb = fetched{name: names.DTB, size: sizes.DTB}
	return nil
}

// run works at the prompt.
func (p *ubootPlan) run(ctx context.Context) error {
	if said, err := p.d.Command(ctx, "version", 10*time.Second, nil); err != nil {
		return err
	} else if m := regexp.MustCompile(`(?m)^U-Boot.*$`).FindString(said); m != "" {
		p.u.note("boot loader: %.100s", strings.TrimSpace(m))
	}
	for _, c := range p.u.Setup {
		said, err := p.d.Command(ctx, c, time.Minute, nil)
		if err != nil {
			return err
		}
		if strings.Contains(said, "Unknown command") {
			return &finalError{fmt.Errorf("setup: %.100q: %s", c, complaint(said, ubootFailed))}
		}
	}
	if err := p.network(ctx); err != nil {
		return err
	}
	if len(p.u.Commands) > 0 {
		return p.commands(ctx)
	}
	if err := p.load(ctx); err != nil {
		return err
	}
	if err := p.setArgs(ctx, "bootargs"); err != nil {
		return err
	}
	return p.start(ctx, p.command())
}

// network gives the loader its addresses.
func (p *ubootPlan) network(ctx context.Context) error {
	u := p.u
	if u.Address != "" {
		for _, v := range [][2]string{{"ipaddr", u.Address}, {"netmask", u.mask()}, {"gatewayip", u.Gateway}} {
			if v[1] == "" {
				continue
			}
			if err := p.set(ctx, v[0], v[1]); err != nil {
				return err
			}
		}
	}
	if u.Network == "dhcp" {
		if err := p.set(ctx, "autoload", "no"); err != nil {
			return err
		}
		said, err := p.d.Command(ctx, "dhcp", 30*time.Second, regexp.MustCompile(`Retry time exceeded|Retry count exceeded`))
		if err != nil {
			return err
		}
		if !regexp.MustCompile(`DHCP client bound to address|bound to address`).MatchString(said) {
			return fmt.Errorf("dhcp: %s", complaint(said, ubootBad))
		}
	}
	return p.set(ctx, "serverip", u.TFTP)
}

// commands types the block's own list.
func (p *ubootPlan) commands(ctx context.Context) error {
	for name, value := range map[string]string{"ks_kernel": p.kernel.name, "ks_initrd": p.initrd.name, "ks_dtb": p.dtb.name} {
		if value == "" {
			continue
		}
		if err := p.set(ctx, name, value); err != nil {
			return err
		}
	}
	for _, name := range []string{"ks_args", "bootargs"} {
		if err := p.setArgs(ctx, name); err != nil {
			return err
		}
	}
	last := len(p.u.Commands) - 1
	for _, c := range p.u.Commands[:last] {
		said, err := p.d.Command(ctx, c, time.Minute, ubootAbort)
		if err != nil {
			return err
		}
		if m := transferred.FindStringSubmatch(said); m != nil && !slices.Contains([]string{
			fmt.Sprint(p.kernel.size), fmt.Sprint(p.initrd.size), fmt.Sprint(p.dtb.size)}, m[1]) {
			return fmt.Errorf("%.100q brought %s bytes, which is the size of none of the kernel's files", c, m[1])
		}
		if ubootFailed.MatchString(said) {
			return fmt.Errorf("%.100q: %s", c, complaint(said, ubootBad))
		}
	}
	return p.start(ctx, p.u.Commands[last])
}

// start types the last command and reads the loader's answer to it.
func (p *ubootPlan) start(ctx context.Context, command string) error {
	refused, err := launch(ctx, p.t, p.d, p.tap, start{command: command, within: 20 * time.Second,
		good: regexp.MustCompile(`^Starting kernel|^## Starting application|^Starting application`), bad: ubootRefused,
		again: regexp.MustCompile(`^\s*U-Boot(?: SPL| TPL)? \d|^Hit .*key to stop`)})
	if err != nil {
		return err
	}
	if refused != "" {
		return &targets.BootError{Kernel: p.k.Name, Stage: targets.StageRefused,
			Err: fmt.Errorf("U-Boot does not start it (%s): %s", command, refused)}
	}
	return nil
}
