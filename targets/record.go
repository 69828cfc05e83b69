package targets

// BootRecord is the evidence of one boot.
type BootRecord struct {
	Kernel     string            `json:"kernel"`
	BootID     string            `json:"boot_id,omitempty"`
	Release    string            `json:"release,omitempty"`
	Version    string            `json:"version,omitempty"` // uname -v
	Machine    string            `json:"machine,omitempty"` // uname -m
	Arch       string            `json:"arch,omitempty"`    // GOARCH from an ELF header
	CPUs       int               `json:"cpus,omitempty"`
	MemoryKB   int64             `json:"memory_kb,omitempty"`
	Cmdline    string            `json:"cmdline,omitempty"`
	Nonce      string            `json:"nonce,omitempty"`
	Scheduler  Scheduler         `json:"scheduler"`
	Proven     bool              `json:"proven"`
	Unproven   string            `json:"unproven,omitempty"` // why not, when Proven is false
	Phases     []PhaseTime       `json:"phases,omitempty"`
	UptimeS    float64           `json:"uptime_s,omitempty"`    // when probed
	ClientAddr string            `json:"client_addr,omitempty"` // the controller, as the target sees it
	Tools      map[string]string `json:"tools,omitempty"`       // tool -> version line
	CPUFreq    map[string]string `json:"cpufreq,omitempty"`     // governor, driver, limits and frequency in kHz, boost, SMT; nil: the kernel tells none
	Identity   *Identity         `json:"identity,omitempty"`    // of the machine; nil: no probe was made
	Notes      []string          `json:"notes,omitempty"`
}

// Scheduler is what the probe found (../orchestrator never guesses it).
type Scheduler struct {
	Name      string   `json:"name"`             // cfs, eevdf, bfs, muqss, bore, sd, o1, pds, bmq, sched_ext; "" unknown
	Detail    string   `json:"detail,omitempty"` // version from a banner, ops of sched_ext
	Evidence  []string `json:"evidence,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
}
