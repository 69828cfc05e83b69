package iperf

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// csvPattern is the head of a line of -y C; 2.1.x may add milliseconds to the
// time, and prints 1970 for it without -i; 2.1.9 puts the time zone before it.
var csvPattern = regexp.MustCompile(`(?m)^(?:[-+]\d{4}:)?\d{14}(?:\.\d+)?,[^,\n]*,\d+,[^,\n]*,\d+,-?\d+,`)

func looksCSV(text []byte) bool { return csvPattern.Match(text) }

func readCSV(r *Report, text string) {
	r.Tool = Iperf2
	t := &textReader{r: r}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !csvPattern.MatchString(line) {
			if line != "" { // banners leak into the CSV with -d
				r.Notes = append(r.Notes, line)
			}
			continue
		}
		row, err := csvRow(line)
		if err != nil {
			r.Errors = append(r.Errors, err.Error())
			continue
		}
		r.UDP = r.UDP || row.UDP != nil
		t.rows = append(t.rows, row)
	}
	t.endpoints()
	final := t.finals()
	for i, row := range t.rows {
		switch {
		case !final[i]:
			r.Intervals = append(r.Intervals, row)
		case row.Sum:
			r.Sums = append(r.Sums, row)
		case row.Role == Receiver && r.Process == Client && row.UDP != nil:
			r.ServerReport = append(r.ServerReport, row)
		default:
			r.Streams = append(r.Streams, row)
		}
	}
}

func csvRow(line string) (Row, error) {
	f := strings.Split(line, ",")
	if len(f) != 9 && len(f) != 14 {
		return Row{}, fmt.Errorf("%d fields in the CSV line %q, not 9 or 14", len(f), line)
	}
	from, to, _ := strings.Cut(f[6], "-")
	var num [4]float64
	for i, s := range []string{from, to, f[7], f[8]} {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return Row{}, fmt.Errorf("%q is not a number in the CSV line %q", s, line)
		}
		num[i] = v
	}
	row := Row{Line: line, ID: f[5], Sum: f[5] == "-1", Start: num[0], End: num[1], TimeStep: step(to),
		Bytes: num[2], BytesStep: 1, Rate: num[3], RateStep: 1, From: endpoint(f[1], f[2]), To: endpoint(f[3], f[4])}
	if len(f) == 14 && f[11] != "-1" { // -1: a sender cannot know
		d := &Datagrams{}
		var errs [4]error
		d.JitterMS, errs[0] = strconv.ParseFloat(f[9], 64)
		d.Lost, errs[1] = strconv.ParseInt(f[10], 10, 64)
		d.Total, errs[2] = strconv.ParseInt(f[11], 10, 64)
		d.OutOfOrder, errs[3] = strconv.ParseInt(f[13], 10, 64)
		for _, err := range errs {
			if err != nil {
				return Row{}, fmt.Errorf("a datagram count cannot be read in the CSV line %q", line)
			}
		}
		row.UDP = d
	}
	return row, nil
}

func endpoint(addr, port string) netip.AddrPort {
	a, err := netip.ParseAddr(addr)
	p, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || a.IsUnspecified() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a, uint16(p))
}

// endpoints gives the rows a direction. 2.1.x prints the sender first on both
// ends; 2.0.x prints its own end first, and its ids are descriptors from 3 on.
func (t *textReader) endpoints() {
	server := t.serverEnd()
	local := strings.HasPrefix(t.r.Version, "2.0.") || t.r.Version == "" && t.idsFromThree()
	for i := range t.rows {
		row := &t.rows[i]
		first := row.From.IsValid() && row.From == server
		switch {
		case !server.IsValid() || !row.From.IsValid():
			continue
		case local: // a test up; the client also prints the server's report
			if t.r.Process == "" && row.UDP == nil {
				t.r.Process = map[bool]string{true: Server, false: Client}[first]
			}
			row.Direction, row.Role = Up, Sender
			if first || row.Sum && t.r.Process == Server { // a sum names no port
				row.Role = Receiver
			}
		default:
			row.Direction = Up
			if first {
				row.Direction = Down
			}
			if p := t.r.Process; p != "" {
				row.Role = Receiver
				if (p == Client) == (row.Direction == Up) {
					row.Role = Sender
				}
			}
		}
	}
}

// serverEnd is the endpoint that the most rows share.
func (t *textReader) serverEnd() netip.AddrPort {
	count := map[netip.AddrPort]map[netip.AddrPort]bool{}
	add := func(a, other netip.AddrPort) {
		if a.IsValid() && a.Port() != 0 {
			if count[a] == nil {
				count[a] = map[netip.AddrPort]bool{}
			}
			count[a][other] = true
		}
	}
	for _, row := range t.rows {
		add(row.From, row.To)
		add(row.To, row.From)
	}
	var best netip.AddrPort
	for a, others := range count {
		n := len(count[best])
		if len(others) > n || len(others) == n && (!best.IsValid() || a.Port() < best.Port()) {
			best = a // one stream: the lower port listens
		}
	}
	return best
}

func (t *textReader) idsFromThree() bool {
	for _, row := range t.rows {
		if n, err := strconv.Atoi(row.ID); err == nil && n >= 0 && n < 3 {
			return false
		}
	}
	return true
}
