package iperf

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	connPattern  = regexp.MustCompile(`^\[ *(\*?\d+)\] local (\S+) port (\d+) connected (with|to) (\S+) port (\d+)(.*)$`)
	peerPattern  = regexp.MustCompile(`\(peer (\d\S*)\)`)
	idPattern    = regexp.MustCompile(`^\[ *(\*?\d+)\]`)
	orderPattern = regexp.MustCompile(`(\d+) datagrams received out-of-order`)
	cpuPattern   = regexp.MustCompile(`^CPU Utilization: local/\w+ ([\d.]+)% .*remote/\w+ ([\d.]+)%`)
	prefixed     = regexp.MustCompile(`^[^\[\]]*[: ] *\[`)
	listenPort   = regexp.MustCompile(`^Server listening on (?:TCP|UDP) port (\d+)`)
	ownVersion   = regexp.MustCompile(`^iperf (3\.\S+)`)
)

// textReader keeps what the lines before say about the next one.
type textReader struct {
	r       *Report
	hinted  bool            // the caller said which process it is
	listens string          // port of "Server listening on", of the client too with -d and -r
	back    map[string]bool // ids of connections that -d and -r make the other way
	met     bool            // a connection was printed
	down    bool            // iperf3 -R
	reverse map[string]bool // ids of reverse connections
	server  string          // id whose next row is the server's report
	last    *Row            // the row read last
	rows    []Row
}

func readText(r *Report, text string) {
	t := &textReader{r: r, hinted: r.Process != "", back: map[string]bool{}, reverse: map[string]bool{}}
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n \t"), "> \t") // archived mail quotes
		// A title (-T) or a time (--timestamps) before the line.
		if m := prefixed.FindStringIndex(line); m != nil {
			line = line[m[1]-1:]
		}
		if strings.HasPrefix(line, "Server output:") {
			r.Notes = append(r.Notes, "the server's own output follows the client's; it is not read twice")
			break
		}
		t.line(line)
	}
	t.sort()
}

func (t *textReader) line(line string) {
	row, rest, ok, err := parseRow(line)
	switch {
	case err != nil:
		t.r.Errors = append(t.r.Errors, err.Error())
	case ok:
		t.row(row, rest)
	case strings.Contains(line, "Server Report:"):
		if m := idPattern.FindStringSubmatch(line); m != nil {
			t.server = m[1]
		}
	case orderPattern.MatchString(line):
		n, err := strconv.ParseInt(orderPattern.FindStringSubmatch(line)[1], 10, 64)
		if err == nil && t.last != nil && t.last.UDP != nil {
			t.last.UDP.OutOfOrder = n
		}
		t.r.Notes = append(t.r.Notes, strings.TrimSpace(line))
	case rowLike.MatchString(line):
		t.odd(line)
	default:
		t.prose(line)
	}
}

// words matches what 2.1.x prints after an interval beside figures: histograms,
// delays.
var words = regexp.MustCompile(`\bsec\s+[A-Za-z]`)

// odd is a line that begins like figures and goes on as something else.
func (t *textReader) odd(line string) {
	if words.MatchString(line) {
		t.r.Notes = append(t.r.Notes, line)
		return
	}
	t.r.Errors = append(t.r.Errors, "unreadable line "+strconv.Quote(line))
}

func (t *textReader) row(row Row, rest string) {
	r := t.r
	row.UDP = parseDatagrams(rest)
	r.UDP = r.UDP || row.UDP != nil
	tail := strings.Fields(rest)
	if n := len(tail); n > 0 {
		switch tail[n-1] {
		case Sender, Receiver:
			row.Role, r.Tool = tail[n-1], Iperf3
		case "(omitted)":
			row.Omitted = true
		}
	}
	retr := retr2Pattern
	if r.Tool == Iperf3 {
		retr = retr3Pattern
	}
	if m := retr.FindStringSubmatch(rest + " "); m != nil && row.UDP == nil && !r.UDP {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			row.Retransmits = &n
		}
	}
	if t.server == row.ID && t.server != "" {
		t.server = ""
		row.Role = Receiver
		row.Direction = Up
		r.ServerReport = append(r.ServerReport, row)
		t.last = &r.ServerReport[len(r.ServerReport)-1]
		return
	}
	if t.back[row.ID] {
		row.Direction, row.Role = Down, Receiver
		if r.Process == Server {
			row.Role = Sender
		}
	}
	t.rows = append(t.rows, row)
	t.last = &t.rows[len(t.rows)-1]
}

func (t *textReader) prose(line string) {
	r := t.r
	if m := connPattern.FindStringSubmatch(line); m != nil {
		if r.Tool == "" {
			r.Tool = map[string]string{"with": Iperf2, "to": Iperf3}[m[4]]
		}
		t.reverse[m[1]] = strings.Contains(m[7], "(reverse)")
		t.back[m[1]] = m[4] == "with" && t.listens != "" && (m[3] == t.listens) == (r.Process == Client)
		t.met = true
		if p := peerPattern.FindStringSubmatch(m[7]); p != nil {
			r.PeerVersion = p[1]
		}
		return
	}
	trimmed := strings.TrimSpace(line)
	if m := cpuPattern.FindStringSubmatch(trimmed); m != nil {
		local, _ := strconv.ParseFloat(m[1], 64)
		remote, _ := strconv.ParseFloat(m[2], 64)
		r.CPU = &CPU{Local: local, Remote: remote}
		return
	}
	if m := ownVersion.FindStringSubmatch(trimmed); m != nil {
		r.Version, r.Tool = m[1], Iperf3
		return
	}
	if m := listenPort.FindStringSubmatch(trimmed); m != nil && t.listens == "" {
		t.listens = m[1]
	}
	switch {
	case strings.HasPrefix(trimmed, "Client connecting to"):
		if !t.met && !t.hinted {
			r.Process = "" // with -d and -r a client listens first
		}
		t.process(Iperf2, Client)
		r.UDP = r.UDP || strings.Contains(trimmed, "UDP port")
	case strings.HasPrefix(trimmed, "Reverse mode, remote host"):
		t.down = true
	case strings.HasPrefix(trimmed, "Connecting to host"):
		t.process(Iperf3, Client)
	case strings.HasPrefix(trimmed, "Server listening on TCP port"), strings.HasPrefix(trimmed, "Server listening on UDP port"):
		t.process(Iperf2, Server)
		r.UDP = r.UDP || strings.Contains(trimmed, "UDP")
	case strings.HasPrefix(trimmed, "Server listening on"):
		t.process(Iperf3, Server)
	case strings.Contains(trimmed, "Total Datagrams"), strings.Contains(trimmed, "Lost/Total"):
		r.UDP = true
	case strings.HasPrefix(trimmed, "iperf3: "), strings.Contains(trimmed, " failed: "):
		if quiet(trimmed) {
			r.Notes = append(r.Notes, trimmed)
		} else {
			r.Errors = append(r.Errors, trimmed)
		}
	case strings.Contains(trimmed, "WARNING"):
		r.Notes = append(r.Notes, trimmed)
	}
}

// process takes the first banner's word: with -d a client also listens, and a
// server also connects.
func (t *textReader) process(tool, process string) {
	if t.r.Tool == "" {
		t.r.Tool = tool
	}
	if t.r.Process == "" {
		t.r.Process = process
	}
}
