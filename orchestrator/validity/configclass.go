package validity

import (
	"regexp"
	"strings"
)

// Classes of kernel options, in the order of how much they are able to change a
// measurement by themselves.
const (
	ofTimer = iota
	ofPreemption
	ofDebugging
	ofMitigations
	ofFrequency
	ofAccounting
	ofMachine
	ofCompiler
	ofScheduler // what is compared
	ofNothing   // not known to matter
	ofLabel     // names and keys: no difference
)

func classNote(weight int) string {
	note := [...]string{ofTimer: "timer and RCU", ofPreemption: "preemption", ofDebugging: "debugging", ofMitigations: "hardening",
		ofFrequency: "frequency and idle", ofAccounting: "accounting", ofMachine: "machine and memory", ofCompiler: "compiler",
		ofScheduler: "the scheduler itself", ofNothing: "", ofLabel: ""}[weight]
	if note == "" {
		return ""
	}
	return " (" + note + ")"
}

// optionClass is a pattern of option names and their class.
type optionClass struct {
	pattern *regexp.Regexp
	weight  int
}

// optionClasses are matched in order, on the whole name. The options are those of
// Linux 2.6 to 6.x and of the out-of-tree schedulers (SD, BFS, MuQSS, PDS, BMQ,
// BORE); what they cost is in their own help texts.
var optionClasses = [...]optionClass{
	{regexp.MustCompile(`^(?:LOCALVERSION.*|BUILD_SALT|DEFAULT_HOSTNAME|SYSTEM_TRUSTED_KEYS|SYSTEM_REVOCATION_KEYS|MODULE_SIG_KEY|INITRAMFS_SOURCE|PAHOLE_VERSION|RUSTC_(?:LLVM_)?VERSION|.*_VERSION_STRING)$`), ofLabel},
	{regexp.MustCompile(`^(?:SCHED_(?:BFS|MUQSS|ALT|PDS|BMQ|BORE|CLASS_EXT|SMT|MC|MC_PRIO|CLUSTER|CORE|HRTICK|AUTOGROUP|DEBUG|INFO|STACK_END_CHECK|OMIT_FRAME_POINTER|PROXY_EXEC|MM_CID|NO_NO_OMIT_FRAME_POINTER)|SCHEDSTATS|ALT_SCHED|BORE|MIN_BASE_SLICE_NS|SMT_NICE|RQ_(?:NONE|SMT|MC|MC_LLC|SMP|ALL)|SHARERQ|FAIR_(?:GROUP|USER)_SCHED|(?:RT|EXT)_GROUP_SCHED|GROUP_SCHED\w*|CGROUP_SCHED|USER_SCHED|CFS_BANDWIDTH|UCLAMP_\w+|NUMA_BALANCING\w*|ENERGY_MODEL|RR_INTERVAL|STAIRCASE\w*)$`), ofScheduler},
	{regexp.MustCompile(`^(?:HZ|HZ_\w+|NO_HZ\w*|HIGH_RES_TIMERS|TICK_ONESHOT|HRTIMER\w*|GENERIC_CLOCKEVENTS|CONTEXT_TRACKING_(?:USER|FORCE)\w*|RCU_NOCB_CPU\w*|RCU_LAZY|RCU_BOOST|FAST_NO_HZ|RCU_FAST_NO_HZ)$`), ofTimer},
	{regexp.MustCompile(`^(?:PREEMPT|PREEMPT_(?:NONE|VOLUNTARY|RT|RT_FULL|LAZY|DYNAMIC|DESKTOP|BUILD|BKL|RCU|COUNT|LL|RTB|SOFTIRQS|HARDIRQS)(?:_BUILD)?|PREEMPTION|TREE_PREEMPT_RCU|IRQ_FORCED_THREADING\w*)$`), ofPreemption},
	{regexp.MustCompile(`^(?:LOCKDEP\w*|PROVE_\w+|LOCK_STAT|KASAN\w*|KMSAN\w*|KCSAN\w*|UBSAN\w*|KFENCE\w*|SLUB_DEBUG\w*|SLAB_DEBUG|DEBUG_(?:SLAB|PAGEALLOC\w*|VM\w*|LIST|SG|OBJECTS\w*|PREEMPT|KMEMLEAK|SPINLOCK|MUTEXES|RWSEMS|RT_MUTEXES|LOCK_\w+|LOCKDEP|ATOMIC\w*|PER_CPU\w*|HIGHMEM|STACKOVERFLOW|STACK_USAGE|TIMEKEEPING|IRQFLAGS|NET|NOTIFIERS|CREDENTIALS|PLIST|RODATA_TEST|WX|KERNEL|KOBJECT\w*|SHIRQ|WW_MUTEX\w*|VIRTUAL|MAPLE_TREE|FORCE_\w+|ENTRY)|PAGE_POISONING\w*|PAGE_TABLE_CHECK\w*|PAGE_OWNER|FUNCTION_(?:GRAPH_)?TRACER|DYNAMIC_FTRACE|IRQSOFF_TRACER|PREEMPT_TRACER|SCHED_TRACER|TRACE_IRQFLAGS|GCOV\w*|KCOV\w*|LATENCYTOP|PROFILING|PROFILE_\w+|FAULT_INJECTION|FAILSLAB|RCU_TRACE|CSD_LOCK_WAIT_DEBUG\w*|FRAME_POINTER|UNWINDER_\w+)$`), ofDebugging},
	{regexp.MustCompile(`^(?:MITIGATION_\w+|CPU_MITIGATIONS|SPECULATION_MITIGATIONS|STACKPROTECTOR\w*|CC_STACKPROTECTOR\w*|RANDOMIZE_(?:BASE|MEMORY|KSTACK\w*)|HARDENED_USERCOPY\w*|FORTIFY_SOURCE|INIT_ON_(?:ALLOC|FREE)_DEFAULT_ON|INIT_STACK_\w+|GCC_PLUGIN_\w+|ZERO_CALL_USED_REGS|SLAB_FREELIST_\w+|SHUFFLE_PAGE_ALLOCATOR|UNMAP_KERNEL_AT_EL0|HARDEN_BRANCH_PREDICTOR|MITIGATE_SPECTRE_BRANCH_HISTORY|ARM64_(?:BTI|PTR_AUTH|MTE|SW_TTBR0_PAN)\w*|X86_KERNEL_IBT|X86_USER_SHADOW_STACK|SHADOW_CALL_STACK|CFI_CLANG|LIST_HARDENED|BUG_ON_DATA_CORRUPTION|VMAP_STACK|STRICT_KERNEL_RWX)$`), ofMitigations},
	{regexp.MustCompile(`^(?:CPU_FREQ|CPU_FREQ_(?:DEFAULT_)?GOV_\w+|CPU_IDLE\w*|INTEL_IDLE|X86_(?:INTEL_PSTATE|AMD_PSTATE\w*|ACPI_CPUFREQ\w*|POWERNOW_K8)|CPUFREQ_DT\w*|HALTPOLL_CPUIDLE|ACPI_PROCESSOR\w*)$`), ofFrequency},
	{regexp.MustCompile(`^(?:(?:TICK|VIRT)_CPU_ACCOUNTING\w*|IRQ_TIME_ACCOUNTING|TASKSTATS|TASK_DELAY_ACCT|TASK_XACCT|PSI|PSI_DEFAULT_DISABLED|BSD_PROCESS_ACCT|AUDITSYSCALL)$`), ofAccounting},
	{regexp.MustCompile(`^(?:SMP|NR_CPUS|MAXSMP|NUMA|X86_32|64BIT|HIGHMEM\w*|M(?:386|486|586\w*|686|PENTIUM\w*|K[678]|CORE2|ATOM|CORE|PSC|GEODE\w*|ZEN\d?|NATIVE\w*|SKYLAKE\w*|HASWELL)|GENERIC_CPU\d?|X86_GENERIC|CPU_MIPS\w+|PAGE_SIZE_\w+|ARM64_\w+_PAGES|TRANSPARENT_HUGEPAGE\w*|SLAB|SLUB|SLOB|SLUB_TINY|SLUB_CPU_PARTIAL|LRU_GEN\w*|PARAVIRT\w*|HYPERVISOR_GUEST|KVM_GUEST|XEN|XEN_P\w+|DEFAULT_TCP_CONG|TCP_CONG_ADVANCED|NET_SCH_DEFAULT|DEFAULT_NET_SCH|JUMP_LABEL|MODVERSIONS|COMPACTION|SWAP|ZSWAP_DEFAULT_ON|FPU\w*|MATH_EMULATION)$`), ofMachine},
	{regexp.MustCompile(`^(?:CC_OPTIMIZE_FOR_\w+|CC_VERSION_TEXT|GCC_VERSION|CLANG_VERSION|CC_IS_\w+|LD_IS_\w+|LD_VERSION|LLD_VERSION|LTO_(?:NONE|CLANG\w*)|AUTOFDO_CLANG|PROPELLER_CLANG|OPTIMIZE_INLINING)$`), ofCompiler},
}

func weightOf(name string) int {
	for _, c := range optionClasses {
		if c.pattern.MatchString(name) {
			return c.weight
		}
	}
	return ofNothing
}

// renamed gives options the names that Linux 6.9 gave them, so that one kernel
// before and one after it differ in what they do only.
func renamed(c kernelConfig) kernelConfig {
	out := make(kernelConfig, len(c))
	for n, v := range c {
		switch n {
		case "PAGE_TABLE_ISOLATION", "RETPOLINE", "SLS", "CALL_DEPTH_TRACKING", "RETHUNK":
			n = "MITIGATION_" + n
		case "CPU_UNRET_ENTRY", "CPU_IBPB_ENTRY", "CPU_IBRS_ENTRY", "CPU_SRSO":
			n = "MITIGATION_" + strings.TrimPrefix(n, "CPU_")
		case "SPECULATION_MITIGATIONS":
			n = "CPU_MITIGATIONS"
		case "GDS_FORCE_MITIGATION":
			n = "MITIGATION_GDS_FORCE"
		case "SPECTRE_BHI_ON":
			n = "MITIGATION_SPECTRE_BHI"
		}
		if _, known := out[n]; !known || v != "n" {
			out[n] = v
		}
	}
	return out
}

var (
	compilerName    = regexp.MustCompile(`((?:gcc|clang)[\w.+-]*) \([^()]*\)`) // with the packager's remark
	compilerVersion = regexp.MustCompile(`(gcc|clang)[\w.+-]*(?: version)? (\d+(?:\.\d+)+)`)
)

// compilerOf is the compiler that a kernel's version line or configuration names,
// without the prefix of a cross compiler and the packager's remark: "gcc 12.2.0"
// of "x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14) 12.2.0". "" when it names none.
func compilerOf(text string) string {
	m := compilerVersion.FindStringSubmatch(compilerName.ReplaceAllString(text, "$1"))
	if m == nil {
		return ""
	}
	return m[1] + " " + m[2]
}
