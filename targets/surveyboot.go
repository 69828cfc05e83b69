package targets

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Method is a boot method that the evidence speaks for.
type Method struct {
	Name string `json:"name"` // as in boot "NAME"
	Why  string `json:"why"`
	// Fill says what a person must know or do before it works, "" when nothing.
	Fill string `json:"fill,omitempty"`
	// Attributes of its block that the evidence gives, name and value in turn.
	Attributes [][2]string `json:"attributes,omitempty"`
}

// mtdLoaders are boot loaders by the names that firmware gives to flash partitions.
func mtdLoaders() []struct {
	name    string
	pattern *regexp.Regexp
} {
	type l = struct {
		name    string
		pattern *regexp.Regexp
	}
	return []l{
		{"CFE", regexp.MustCompile(`(?i)^(board)?cfe(rom|ram)?$`)},
		{"RedBoot", regexp.MustCompile(`(?i)^redboot|^fis directory$`)},
		{"U-Boot", regexp.MustCompile(`(?i)^u[-_ ]?boot`)},
		{"YAMON", regexp.MustCompile(`(?i)^yamon`)},
		{"ADAM2", regexp.MustCompile(`(?i)^adam2$|^urlader$`)},
		{"a boot loader of unknown name", regexp.MustCompile(`(?i)^(boot|bootloader|loader|factory-boot)$`)},
	}
}

var mtdLine = regexp.MustCompile(`^(mtd\d+): \S+ \S+ "(.*)"$`)

// loaders gathers the evidence for boot loaders, the strongest first.
func (r *surveyReader) loaders() {
	say := func(name, evidence string) {
		for i, l := range r.s.Loaders {
			if l.Value == name {
				r.s.Loaders[i].Evidence += "; " + evidence
				return
			}
		}
		r.s.Loaders = append(r.s.Loaders, Found{Value: name, Evidence: evidence})
	}
	efi := pairs(r.more["efi"])
	if info := efiText(efi["LoaderInfo"]); info != "" {
		name := "systemd-boot"
		if !strings.HasPrefix(info, "systemd-boot") {
			name = strings.Fields(info + " ?")[0]
		}
		say(name, "EFI variable LoaderInfo: "+info)
	}
	for _, line := range r.lines("mtd") {
		m := mtdLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, l := range mtdLoaders() {
			if l.pattern.MatchString(m[2]) {
				say(l.name, m[1]+" is named "+m[2])
				break
			}
		}
	}
	if v := strings.TrimRight(pairs(r.more["uboot"])["version"], "\x00"); v != "" {
		say("U-Boot", "the device tree says "+v)
	}
	for _, f := range []struct{ name, end string }{
		{"EXTLINUX", "/ldlinux.sys"}, {"GRUB", "/grub.cfg"}, {"GRUB", "/grubenv"}, {"GRUB", "/menu.lst"},
		{"U-Boot", "/boot.scr"}, {"U-Boot", "/uEnv.txt"}, {"U-Boot", "/armbianEnv.txt"},
		{"Raspberry Pi firmware", "/bootcode.bin"}, {"Raspberry Pi firmware", "/start4.elf"}, {"Raspberry Pi firmware", "/start.elf"},
	} {
		if p := r.bootFile(f.end); p != "" {
			say(f.name, p+" is there")
		}
	}
	if p := r.bootFile("/extlinux.conf"); p != "" && r.bootFile("/ldlinux.sys") == "" {
		say("U-Boot", p+" is there, and no ldlinux.sys beside it")
	}
	if efi["efi"] == "yes" && len(r.s.Loaders) == 0 {
		say("EFI firmware", "/sys/firmware/efi is there, and no loader is seen")
	}
}

// bootFile is the first path of /boot and its like that ends so.
func (r *surveyReader) bootFile(end string) string {
	for _, p := range r.lines("boot") {
		if strings.HasSuffix(p, end) {
			return p
		}
	}
	return ""
}

// efiText reads a UTF-16 variable in hexadecimal, after its attributes.
func efiText(x string) string {
	b, err := hex.DecodeString(x)
	if err != nil || len(b) < 6 {
		return ""
	}
	var s strings.Builder
	for i := 4; i+1 < len(b) && (b[i] != 0 || b[i+1] != 0); i += 2 {
		if b[i+1] == 0 && b[i] >= ' ' && b[i] < 0x7f {
			s.WriteByte(b[i])
		} else {
			s.WriteByte('?')
		}
	}
	return s.String()
}

func (r *surveyReader) has(loader string) *Found {
	for i := range r.s.Loaders {
		if r.s.Loaders[i].Value == loader {
			return &r.s.Loaders[i]
		}
	}
	return nil
}

// methods ranks the boot methods that the evidence speaks for. What can be used
// as it stands comes before what a person must complete; "none" is the last.
func (r *surveyReader) methods() {
	add := func(m Method) { r.s.Methods = append(r.s.Methods, m) }
	defer func() {
		slices.SortStableFunc(r.s.Methods, func(a, b Method) int { return filled(a) - filled(b) })
		add(Method{Name: "none", Why: "whatever runs is measured as it is: one boot a run, unproven"})
	}()
	if r.s.UID != "" && r.s.UID != "0" {
		r.s.Notes = append(r.s.Notes, "the login has uid "+r.s.UID+": every boot method but none needs root on the target (set the user, or give a command with sudo)")
		return
	}
	if r.s.Container != "" {
		r.s.Notes = append(r.s.Notes, "it cannot boot kernels: "+r.s.Container)
		return
	}
	r.kexec(add)
	if f := r.has("systemd-boot"); f != nil {
		add(Method{Name: "systemd-boot", Why: f.Evidence})
	}
	if f := r.has("GRUB"); f != nil && r.bootFile("/grub.cfg") != "" {
		m := Method{Name: "grub", Why: f.Evidence, Attributes: [][2]string{{"dir", path.Dir(r.bootFile("/grub.cfg"))}}}
		if r.bootFile("/grubenv") == "" {
			m.Fill = "grubenv is missing: grub-editenv " + path.Dir(r.bootFile("/grub.cfg")) + "/grubenv create"
		}
		add(m)
	}
	if f := r.has("EXTLINUX"); f != nil {
		m := Method{Name: "extlinux", Why: f.Evidence}
		if pairs(r.more["tools"])["extlinux"] == "" {
			m.Fill = "the program extlinux must be installed on the target"
		}
		add(m)
	}
	r.flashed(add)
}

func filled(m Method) int {
	if m.Fill != "" {
		return 1
	}
	return 0
}

func (r *surveyReader) kexec(add func(Method)) {
	k, tool := pairs(r.more["kexec"]), pairs(r.more["tools"])["kexec"]
	_, locked, _ := strings.Cut(k["lockdown"], "[")
	locked, _, _ = strings.Cut(locked, "]")
	if k["loaded"] == "" {
		return
	}
	m := Method{Name: "kexec", Why: "the running kernel has it (/sys/kernel/kexec_loaded)"}
	helper := slices.Contains([]string{"amd64", "arm64", "riscv64"}, r.s.Arch.Value)
	switch {
	case k["disabled"] == "1":
		m.Fill = "kexec is switched off until the next start (kernel.kexec_load_disabled = 1)"
	case tool == "" && !helper:
		m.Fill = "the program kexec (kexec-tools) must be installed on the target"
	case tool != "":
		m.Why += ", and " + tool + " is there"
	}
	if m.Fill == "" && locked != "" && locked != "none" {
		m.Fill = "the running kernel is locked down (" + locked + "): kernels must be signed"
	}
	add(m)
}

// flashed are the methods of devices that start from flash; all of them need a
// person to say something first.
func (r *surveyReader) flashed(add func(Method)) {
	var net [][2]string
	if a, err := netip.ParseAddr(r.s.Running.ClientAddr); err == nil && a.Unmap().Is4() {
		net = [][2]string{{"tftp", a.Unmap().String()}}
	}
	const console = "it types on the serial console: add a console block; tftp is this controller as the target sees it"
	if f := r.has("CFE"); f != nil {
		add(Method{Name: "cfe", Why: f.Evidence, Fill: console, Attributes: net})
	}
	if f := r.has("RedBoot"); f != nil {
		add(Method{Name: "redboot", Why: f.Evidence, Fill: console + `, or telnet = "ADDRESS:9000"`, Attributes: net})
	}
	if f := r.has("U-Boot"); f != nil {
		add(Method{Name: "uboot", Why: f.Evidence, Fill: console, Attributes: net})
		u := pairs(r.more["uboot"])
		if u["fw_setenv"] != "" && u["fw_env.config"] != "" {
			add(Method{Name: "uboot-env", Why: f.Evidence + "; " + u["fw_setenv"] + " and /etc/fw_env.config are there",
				Fill: "set = { … }: the variables that start a kernel; U-Boot needs a boot counter and altbootcmd"})
		}
	}
	if p := pairs(r.more["tools"])["sysupgrade"]; p != "" && len(r.more["openwrt_release"]) > 0 {
		add(Method{Name: "sysupgrade", Why: p + " is there, and /etc/openwrt_release", Fill: "every boot writes the flash: take it only where nothing else serves"})
	}
	if p := pairs(r.more["tools"])["reboot"]; p != "" {
		add(Method{Name: "ssh-reboot", Why: p + " is there", Fill: "the boot loader must start the wanted kernel by itself, or command must choose it"})
	}
}

// Loader is the likeliest boot loader.
func (s *Survey) Loader() Found {
	if len(s.Loaders) == 0 {
		return Found{Missing: "no known name in /proc/mtd, no known file in /boot, no EFI, no word of it in the device tree"}
	}
	f := s.Loaders[0]
	for _, o := range s.Loaders[1:] {
		f.Value += ", " + o.Value
		f.Evidence += "; " + fmt.Sprintf("%s: %s", o.Value, o.Evidence)
	}
	return f
}
