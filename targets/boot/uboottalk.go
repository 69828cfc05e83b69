package boot

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
)

// What U-Boot says (its net/tftp.c, net/bootp.c, boot/bootm.c, cmd/nvedit.c).
var (
	transferred  = regexp.MustCompile(`Bytes transferred = (\d+)`)
	ubootBad     = regexp.MustCompile(`(?i)^(?:\*\* ?)?error|TFTP error|not found|not set\b|not defined|no ethernet|unknown command|retry (?:count|time) exceeded|abort|timed? ?out|host unreachable|link.* down|no link|usage:|bad (?:data )?crc|overwrite reserved memory|failed`)
	ubootFailed  = regexp.MustCompile(`(?im)^(?:\*\* ?|## )?error\b|unknown command|^usage:|^TFTP error|retry (?:count|time) exceeded|not defined|bad (?:data )?crc|^abort`)
	ubootAbort   = regexp.MustCompile(`Retry count exceeded|Retry time exceeded|TFTP server died`)
	ubootMissing = regexp.MustCompile(`(?i)file not found|access violation`)
	ubootRefused = regexp.MustCompile(`(?i)^wrong image format|^bad (?:magic|data crc|header)|bad data crc|can't get kernel|^error|unsupported architecture|^unknown command|^image .*(?:corrupt|too large)|invalid |^bad linux|not valid elf|no valid|must RESET board|FDT and ATAGS support not compiled|did not find a cmdline|could not find a valid device tree|ramdisk image is corrupt|usage:`)
)

// ubootHow names the command for an image by its first bytes (U-Boot doc/usage/cmd;
// kernel Documentation/arch/arm64/booting.rst, arch/x86/boot.rst).
func ubootHow(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 0x210)
	n, err := io.ReadFull(f, head)
	if n < 64 {
		return "", fmt.Errorf("%s: %w: too short for a kernel", path, err)
	}
	head = head[:n]
	at := func(offset int, magic string) bool {
		return len(head) >= offset+len(magic) && bytes.Equal(head[offset:offset+len(magic)], []byte(magic))
	}
	switch {
	case at(0, "\x27\x05\x19\x56"), at(0, "\xd0\x0d\xfe\xed"): // legacy uImage, FIT
		return "bootm", nil
	case at(0x38, "ARM\x64"), at(0x30, "RISCV"):
		return "booti", nil
	case at(0x24, "\x18\x28\x6f\x01"): // ARM zImage
		return "bootz", nil
	case at(0x202, "HdrS"):
		return "zboot", nil
	}
	return "", fmt.Errorf("%s is no uImage, FIT, zImage, bzImage or arm64 Image: pack it with mkimage, or set how or commands", path)
}

// ubootQuote makes one word of text for hush and for the old parser: both take
// away single quotes, and one level of backslashes also between them (U-Boot
// common/cli_hush.c, cli_simple.c; seen on 2023.01).
func ubootQuote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, `\`, `\\`).Replace(s) + "'"
}

// strictQuote is for a shell that leaves all between single quotes alone.
func strictQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// hushEscape makes text survive its expansion, where hush takes quotes and
// backslashes away once more. In double quotes nothing saves a single quote.
func hushEscape(s string) string { return strings.NewReplacer("'", `\'`, `\`, `\\`).Replace(s) }

func doubled(s string) string { return strings.ReplaceAll(s, `\`, `\\`) }

func plain(s string) string { return s }

// set gives a variable of the loader a value.
func (p *ubootPlan) set(ctx context.Context, name, value string) error {
	said, err := p.d.Command(ctx, "setenv "+name+" "+value, 10*time.Second, nil)
	if err != nil {
		return err
	}
	if ubootFailed.MatchString(said) {
		return fmt.Errorf("setenv %s: %s", name, complaint(said, ubootBad))
	}
	return nil
}

// get reads a variable, "" when it is not defined.
func (p *ubootPlan) get(ctx context.Context, name string) (string, error) {
	said, err := p.d.Command(ctx, "printenv "+name, 10*time.Second, nil)
	if err != nil {
		return "", err
	}
	for line := range strings.SplitSeq(said, "\n") {
		if v, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", nil
}

// setArgs puts the kernel's command line into a variable and reads it back. What
// is longer than a line of the loader is put together from parts. Parsers differ,
// so what is read back decides which way of writing it was right.
func (p *ubootPlan) setArgs(ctx context.Context, name string) error {
	want := strings.Join(strings.Fields(p.k.Args()), " ")
	room := 80
	if p.d.Longest > 0 {
		room = p.d.Longest - len("setenv "+name+" ''") - 6*strings.Count(want, "'") - 3*strings.Count(want, `\`)
	}
	parts, err := cutWords(want, room)
	if err != nil {
		return err
	}
	got := ""
	for _, way := range []struct {
		quote, escape func(string) string
		around        string // the references to the parts
	}{
		// hush counts what is quoted as one word, of which it takes 16 or 64
		// (CONFIG_SYS_MAXARGS); the old parser would keep the double quotes.
		{ubootQuote, doubled, `"`}, {ubootQuote, hushEscape, ""}, {ubootQuote, plain, ""}, {strictQuote, plain, `"`},
	} {
		if len(parts) == 1 {
			err = p.set(ctx, name, way.quote(want))
		} else {
			err = p.join(ctx, name, parts, way.around, func(s string) string { return way.quote(way.escape(s)) })
		}
		if err == nil {
			got, err = p.get(ctx, name)
		}
		if err == nil && got == want || ctx.Err() != nil {
			return err
		}
		if e := p.d.Recover(ctx); e != nil { // it may wait for the end of a quotation
			return e
		}
	}
	if err != nil {
		return fmt.Errorf("the command line of %d characters in %d words: %w", len(want), strings.Count(want, " ")+1, err)
	}
	return &finalError{fmt.Errorf("U-Boot keeps another command line than it was given (%s):\n is     %q\n wanted %q\nset it in commands in a way that this loader takes", name, got, want)}
}

// join sets name from parts, each in a variable of its own.
func (p *ubootPlan) join(ctx context.Context, name string, parts []string, around string, write func(string) string) error {
	refs := make([]string, len(parts))
	for i, part := range parts {
		if err := p.set(ctx, fmt.Sprintf("ks%d", i), write(part)); err != nil {
			return err
		}
		refs[i] = fmt.Sprintf("${ks%d}", i)
	}
	return p.set(ctx, name, around+strings.Join(refs, " ")+around)
}

// cutWords cuts text at spaces into parts of at most room characters.
func cutWords(text string, room int) ([]string, error) {
	parts := []string{""}
	for _, w := range strings.Fields(text) {
		if len(w) > room {
			return nil, &finalError{fmt.Errorf("the argument %.60q… has %d characters, and a line of the loader takes %d", w, len(w), room)}
		}
		last := &parts[len(parts)-1]
		switch {
		case *last == "":
			*last = w
		case len(*last)+1+len(w) > room:
			parts = append(parts, w)
		default:
			*last += " " + w
		}
	}
	return parts, nil
}

// load fetches the kernel's files to their places.
func (p *ubootPlan) load(ctx context.Context) error {
	for _, f := range []struct {
		file       *fetched
		set, what  string
		attribute  string
		candidates []string
	}{
		{&p.kernel, p.u.KernelAddr, "kernel", "kernel_addr", []string{"kernel_addr_r", "loadaddr"}},
		{&p.initrd, p.u.InitrdAddr, "initrd", "initrd_addr", []string{"ramdisk_addr_r"}},
		{&p.dtb, p.u.DTBAddr, "device tree", "dtb_addr", []string{"fdt_addr_r"}},
	} {
		if f.file.name == "" {
			continue
		}
		f.file.addr = f.set
		for _, v := range f.candidates {
			if f.file.addr != "" {
				break
			}
			var err error
			if f.file.addr, err = p.get(ctx, v); err != nil {
				return err
			}
		}
		if f.file.addr == "" {
			return &finalError{fmt.Errorf("the loader's environment does not say where the %s goes (%s): set %s",
				f.what, strings.Join(f.candidates, ", "), f.attribute)}
		}
		if err := p.fetch(ctx, *f.file); err != nil {
			return err
		}
	}
	return nil
}

// fetch loads one file and checks that it is whole.
func (p *ubootPlan) fetch(ctx context.Context, f fetched) error {
	command := "tftpboot " + f.addr + " " + f.name
	var problem error
	for range 3 {
		said, err := p.d.Command(ctx, command, time.Minute, ubootAbort)
		if err != nil {
			return err
		}
		m := transferred.FindStringSubmatch(said)
		switch {
		case m != nil && m[1] == fmt.Sprint(f.size):
			return nil
		case m != nil:
			problem = fmt.Errorf("tftpboot %s brought %s of %d bytes", f.name, m[1], f.size)
		case ubootMissing.MatchString(said):
			return &finalError{fmt.Errorf("the TFTP server at %s does not give %s: %s (is it the server that kernsweep's tftp_listen or tftp_root is about?)",
				p.u.TFTP, f.name, complaint(said, ubootBad))}
		default:
			problem = fmt.Errorf("tftpboot %s: %s", f.name, complaint(said, ubootBad))
		}
	}
	return problem
}

// command is the one that starts what was loaded.
func (p *ubootPlan) command() string {
	size := func(n int64) string { return fmt.Sprintf("%x", n) }
	switch p.how {
	case "go", "bootelf":
		return p.how + " " + p.kernel.addr
	case "zboot":
		c := "zboot " + p.kernel.addr + " " + size(p.kernel.size)
		if p.initrd.name != "" {
			c += " " + p.initrd.addr + " " + size(p.initrd.size)
		}
		return c
	}
	c := p.how + " " + p.kernel.addr
	initrd := "-"
	if p.initrd.name != "" {
		initrd = p.initrd.addr
		if how, err := ubootHow(p.k.Image.Initrd); err != nil || how != "bootm" {
			initrd += ":" + size(p.initrd.size) // a raw one
		}
	}
	switch {
	case p.dtb.name != "":
		return c + " " + initrd + " " + p.dtb.addr
	case p.how != "bootm": // they need one: the loader's own
		return c + " " + initrd + " ${fdtcontroladdr}"
	case p.initrd.name != "":
		return c + " " + initrd
	}
	return c
}
