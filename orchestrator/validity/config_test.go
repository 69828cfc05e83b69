package validity

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Excerpts of Debian's configurations of 6.1 (config-6.1.0-50-cloud-amd64) and
// 6.12 (config-6.12.95+deb12-cloud-amd64), with their comments and headings.
const (
	debian61 = `#
# Automatically generated file; DO NOT EDIT.
# Linux/x86 6.1.176 Kernel Configuration
#
CONFIG_CC_VERSION_TEXT="gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0"
CONFIG_CC_IS_GCC=y
CONFIG_GCC_VERSION=120200
CONFIG_INIT_ENV_ARG_LIMIT=32
# CONFIG_COMPILE_TEST is not set
CONFIG_LOCALVERSION=""
CONFIG_BUILD_SALT="6.1.0-50-cloud-amd64"
CONFIG_NO_HZ_IDLE=y
# CONFIG_NO_HZ_FULL is not set
CONFIG_HIGH_RES_TIMERS=y
CONFIG_PREEMPT_BUILD=y
CONFIG_PREEMPT_VOLUNTARY=y
# CONFIG_PREEMPT is not set
CONFIG_PREEMPT_DYNAMIC=y
# CONFIG_SCHED_CORE is not set
CONFIG_FAIR_GROUP_SCHED=y
CONFIG_SCHED_AUTOGROUP=y
CONFIG_HZ_250=y
CONFIG_HZ=250
CONFIG_PAGE_TABLE_ISOLATION=y
CONFIG_RETPOLINE=y
# CONFIG_DEBUG_LIST is not set
# CONFIG_KFENCE is not set
`
	debian612 = `CONFIG_CC_VERSION_TEXT="x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0"
CONFIG_CC_IS_GCC=y
CONFIG_GCC_VERSION=120200
CONFIG_INIT_ENV_ARG_LIMIT=32
# CONFIG_COMPILE_TEST is not set
CONFIG_LOCALVERSION=""
CONFIG_BUILD_SALT="6.12.95+deb12-cloud-amd64"
CONFIG_NO_HZ_IDLE=y
# CONFIG_NO_HZ_FULL is not set
CONFIG_HIGH_RES_TIMERS=y
CONFIG_PREEMPT_BUILD=y
CONFIG_PREEMPT_VOLUNTARY=y
# CONFIG_PREEMPT is not set
# CONFIG_PREEMPT_LAZY is not set
CONFIG_PREEMPT_DYNAMIC=y
# CONFIG_SCHED_CORE is not set
CONFIG_FAIR_GROUP_SCHED=y
CONFIG_GROUP_SCHED_WEIGHT=y
CONFIG_SCHED_AUTOGROUP=y
CONFIG_HZ_250=y
CONFIG_HZ=250
CONFIG_MITIGATION_PAGE_TABLE_ISOLATION=y
CONFIG_MITIGATION_RETPOLINE=y
CONFIG_MITIGATION_L1TF=y
CONFIG_PAGE_SIZE_4KB=y
# CONFIG_DEBUG_LIST is not set
CONFIG_KFENCE=y
CONFIG_KFENCE_SAMPLE_INTERVAL=0
CONFIG_ARCH_SUPPORTS_RT=y
`
)

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // a buffer takes everything
	_ = w.Close()
	return b.String()
}

func TestDifferentConfigurations(t *testing.T) {
	with := func(lines ...string) string { return debian61 + strings.Join(lines, "\n") + "\n" }
	for _, c := range []struct {
		name     string
		cfs, bfs string // files; "": not there
		want     []string
		not      []string
	}{
		{"the same", debian61, debian61, nil, nil},
		{"the scheduler alone", with("CONFIG_CFS_BANDWIDTH=y"), with("CONFIG_SCHED_BFS=y", "# CONFIG_SCHED_DEBUG is not set"), nil, nil},
		{"another name and build", debian61, strings.ReplaceAll(debian61, "6.1.0-50", "6.1.0-51"), nil, nil},
		{"tick and preemption", debian61, strings.NewReplacer("CONFIG_HZ=250", "CONFIG_HZ=1000", "CONFIG_HZ_250=y", "CONFIG_HZ_1000=y",
			"CONFIG_PREEMPT_VOLUNTARY=y", "# CONFIG_PREEMPT_VOLUNTARY is not set", "# CONFIG_PREEMPT is not set", "CONFIG_PREEMPT=y").Replace(debian61),
			[]string{"HZ: 1000 against 250", "PREEMPT: y against not set", "5 options that can matter"}, nil},
		{"a debugging kernel", debian61, with("CONFIG_PROVE_LOCKING=y", "CONFIG_LOCKDEP=y", "CONFIG_KASAN=y", "CONFIG_USB_STORAGE=m"),
			[]string{"can explain a difference by themselves", "LOCKDEP: y against absent", "and 1 more", "1 others differ", "USB_STORAGE: m against absent"}, nil},
		{"drivers alone", debian61, with("CONFIG_USB_STORAGE=m", "CONFIG_E1000=y"),
			[]string{"differ in 2 options beyond the scheduler, none of them known to change speed", "E1000: y against absent"}, []string{"by themselves:"}},
		{"off is off, said or not", debian61, strings.ReplaceAll(debian61, "# CONFIG_DEBUG_LIST is not set\n", ""), nil, nil},
		{"two series of Debian", debian61, debian612,
			[]string{"themselves: KFENCE: y against not set {", "1 options that can matter", "1 of the scheduler", "GROUP_SCHED_WEIGHT"}, []string{"RETPOLINE", "CC_VERSION_TEXT"}},
		{"one not on file", debian61, "", []string{"not on file", "of bfs not"}, nil},
		{"none on file", "", "", []string{"not on file", "none of neither"}, nil},
	} {
		for _, gz := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", c.name, gz), func(t *testing.T) {
				r := iperfRig(t, nil, nil, nil)
				for i, text := range []string{c.cfs, c.bfs} {
					switch {
					case text == "":
					case gz:
						r.file("ap", i+1, "probe/config.gz", zipped(text))
					default:
						r.file("ap", i+1, "probe/config", strings.ReplaceAll(text, "\n", "\r\n"))
					}
				}
				got := r.found("different configurations")
				if c.want == nil {
					none(t, got)
					return
				}
				f := one(t, got)
				all := f.Text + " {" + f.Evidence + "} " + strings.Join(f.Detail, "; ")
				for _, w := range c.want {
					if !strings.Contains(all, w) {
						t.Errorf("no %q in: %s", w, all)
					}
				}
				for _, w := range c.not {
					if strings.Contains(all, w) {
						t.Errorf("%q in: %s", w, all)
					}
				}
				if f.Hard || f.Kernel != "bfs" || f.Against != "cfs" {
					t.Errorf("%+v", f)
				}
			})
		}
	}
}

// Two whole configurations, thousands of options each: the list is complete, and
// the sentence stays short.
func TestWholeConfigurations(t *testing.T) {
	var a, b strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&a, "CONFIG_DRIVER_%04d=m\n", i)
		switch {
		case i%100 == 0:
			fmt.Fprintf(&b, "# CONFIG_DRIVER_%04d is not set\n", i)
		default:
			fmt.Fprintf(&b, "CONFIG_DRIVER_%04d=m\n", i)
		}
	}
	r := iperfRig(t, nil, nil, nil)
	r.file("ap", 1, "probe/config.gz", zipped(debian61+a.String()))
	r.file("ap", 2, "probe/config.gz", zipped(debian612+b.String()))
	f := one(t, r.found("different configurations"))
	if len(f.Detail) != 1+1+90+4 || len(f.Text) > 200 || !strings.HasPrefix(f.Detail[0], "KFENCE: y against not set (debugging)") {
		t.Errorf("%d: %s\n%v", len(f.Detail), f.Text, f.Detail[:3])
	}
}

// What cannot be read is said, once for all files, and compared with nothing.
func TestUnreadableConfiguration(t *testing.T) {
	for name, text := range map[string]string{
		"no gzip": "\x1f\x8bnothing", "cut off": zipped(debian61)[:60], "empty": "", "of another kind": zipped("<html>CONFIG</html>"),
		"without end": zipped(strings.Repeat("# nothing\n", 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			r := iperfRig(t, nil, nil, nil)
			r.file("ap", 1, "probe/config.gz", text)
			r.file("ap", 2, "probe/config.gz", text)
			f := one(t, r.found("evidence unreadable"))
			if f.Hard || !strings.HasPrefix(f.Text, "could not be checked: ap/boot-001/probe/config.gz: ") {
				t.Errorf("%+v", f)
			}
			one(t, r.found("different configurations")) // not on file
		})
	}
	r := iperfRig(t, nil, nil, nil)
	r.file("ap", 1, "probe/config", debian61)
	r.file("ap", 2, "probe/x", "")
	if err := os.Mkdir(r.run.BootDir("ap", 2)+"/probe/config.gz", 0o755); err != nil {
		t.Fatal(err)
	}
	if f := one(t, r.found("evidence unreadable")); !strings.Contains(f.Text, "not a regular file") {
		t.Errorf("%+v", f)
	}
}

func TestOptionClasses(t *testing.T) {
	for class, names := range map[int]string{
		ofTimer:       "HZ HZ_1000 NO_HZ NO_HZ_FULL HIGH_RES_TIMERS RCU_NOCB_CPU",
		ofPreemption:  "PREEMPT PREEMPT_NONE PREEMPT_RT PREEMPT_RT_FULL PREEMPT_DYNAMIC PREEMPTION TREE_PREEMPT_RCU",
		ofDebugging:   "LOCKDEP PROVE_LOCKING PROVE_RCU LOCK_STAT KASAN KASAN_INLINE SLUB_DEBUG SLUB_DEBUG_ON DEBUG_SPINLOCK DEBUG_PREEMPT DEBUG_PAGEALLOC FUNCTION_TRACER LATENCYTOP GCOV_KERNEL",
		ofMitigations: "MITIGATION_RETPOLINE CPU_MITIGATIONS STACKPROTECTOR_STRONG INIT_ON_ALLOC_DEFAULT_ON UNMAP_KERNEL_AT_EL0",
		ofFrequency:   "CPU_FREQ CPU_FREQ_DEFAULT_GOV_ONDEMAND CPU_IDLE INTEL_IDLE X86_INTEL_PSTATE",
		ofAccounting:  "VIRT_CPU_ACCOUNTING_GEN TICK_CPU_ACCOUNTING IRQ_TIME_ACCOUNTING PSI",
		ofMachine:     "SMP NR_CPUS NUMA TRANSPARENT_HUGEPAGE_ALWAYS SLAB SLUB MCORE2 M586TSC DEFAULT_TCP_CONG PARAVIRT_SPINLOCKS",
		ofCompiler:    "CC_OPTIMIZE_FOR_SIZE CC_VERSION_TEXT GCC_VERSION LTO_CLANG_THIN",
		ofScheduler:   "SCHED_BFS SCHED_MUQSS SCHED_BORE SCHED_ALT SCHED_PDS SCHED_CLASS_EXT FAIR_GROUP_SCHED RT_GROUP_SCHED CFS_BANDWIDTH SCHED_AUTOGROUP UCLAMP_TASK SMT_NICE RQ_MC SCHED_SMT MIN_BASE_SLICE_NS NUMA_BALANCING",
		ofNothing:     "USB IOSCHED_BFQ NET_SCHED MQ_IOSCHED_DEADLINE IP_VS_SCHED ARCH_HAS_UBSAN DRM_SCHED PREEMPTIVE_NOTHING DEBUG_FS DEBUG_INFO HZ4 SND_HRTIMER",
		ofLabel:       "LOCALVERSION LOCALVERSION_AUTO BUILD_SALT INITRAMFS_SOURCE",
	} {
		for _, n := range strings.Fields(names) {
			if got := weightOf(n); got != class {
				t.Errorf("%s is of class %d, want %d", n, got, class)
			}
		}
	}
}

func TestCompilerOf(t *testing.T) {
	for text, want := range map[string]string{
		"gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0":                                                           "gcc 12.2.0",
		"x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0":                                          "gcc 12.2.0",
		"(gcc (GCC) 15.3.0, GNU ld (GNU Binutils) 2.46) #1 SMP":                                              "gcc 15.3.0",
		"(mipsel-openwrt-linux-musl-gcc (OpenWrt GCC 8.4.0 r16554-1d4dea6d4f) 8.4.0, GNU ld 2.34) #0":        "gcc 8.4.0",
		"(gcc version 3.4.6 (OpenWrt-2.0)) #1":                                                               "gcc 3.4.6",
		"(gcc version 4.1.2 20061115 (prerelease) (Debian 4.1.1-21)) #2":                                     "gcc 4.1.2",
		"(arm-linux-gnueabihf-gcc-8 (Ubuntu/Linaro 8.4.0-3ubuntu1) 8.4.0, GNU ld) #1":                        "gcc 8.4.0",
		"(Debian clang version 14.0.6, LLD 14.0.6)":                                                          "clang 14.0.6",
		"(Android (8508608, based on r450784e) clang version 14.0.7 (https://example.org/x 4c60), LLD 14.0)": "clang 14.0.7",
		"": "", "(gcc)": "", "(tcc 0.9)": "",
	} {
		if got := compilerOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(debian61))
	f.Add([]byte("CONFIG_=\n# CONFIG_ is not set\nCONFIG_A\x00=\xff\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := parseConfig(text)
		if n := len(configChanges(c, c)); n != 0 {
			t.Errorf("%d options differ from themselves", n)
		}
		if a, b := len(configChanges(c, nil)), len(configChanges(nil, c)); a != b {
			t.Errorf("%d differences one way, %d the other", a, b)
		}
	})
}
