package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"kernsweep/workloads/iperf"
)

// piece is the output of one run of iperf in a file.
type piece struct {
	text    string
	line    int
	process string // "" = the text says so
	idle    bool   // a server that nobody connected to
}

var (
	figureLine = regexp.MustCompile(`^[> \t]*(?:[^\[\]]*[: ] *)?\[ *(\*?\w+(?:-\d+)?)\](?:\[[TR]X-[CS]\])?\s*(\d+\.\d+)\s*-\s*(\d+\.\d+)\s+sec\s`)
	csvLine    = regexp.MustCompile(`^(?:[-+]\d{4}:)?\d{14}(?:\.\d+)?,([^,]*),\d+,([^,]*),\d+,(-?\d+),(\d+\.\d+)-(\d+\.\d+),`)
)

func splitIperf(text string) ([]piece, error) {
	if jsonText(text) {
		return splitJSON(strings.TrimSpace(text))
	}
	s := splitter{}
	n := 0
	for line := range strings.Lines(unbroken(text)) {
		n++
		s.take(n, line)
	}
	if !s.banner && !s.any && len(text) > longestLine {
		return nil, nil // a large file of something else
	}
	s.cut(0)
	return s.pieces, nil
}

// broken is a line of figures that a mail program broke: before its rate, or
// before the word that ends it.
var broken = regexp.MustCompile(`(?m)^([> \t]*\[[^\]\n]*\][^\n]* sec [^\n]*(?:Bytes|\d|/sec))[ \t]*\n[> \t]*([\d.]+ +[KMGT]?(?:bits|Bytes)/sec[^\n]*|sender|receiver)[ \t]*$`)

// unbroken joins such lines, and leaves an empty one so that the others keep
// their numbers.
func unbroken(text string) string { return broken.ReplaceAllString(text, "$1 $2\n") }

// splitJSON takes each object for a run; the events of a JSON stream belong
// together from one "start" to the next. Text that is cut off is left to iperf.Read.
func splitJSON(text string) ([]piece, error) {
	var list []json.RawMessage
	if strings.HasPrefix(text, "[") {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("broken JSON: %w", err)
		}
	}
	var out []piece
	add := func(raw json.RawMessage, line int) error {
		var head struct {
			Event string `json:"event"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return atLine{line, fmt.Errorf("this JSON is not iperf3's: %w", err)}
		}
		if n := len(out); head.Event != "" && head.Event != "start" && n > 0 {
			out[n-1].text += "\n" + string(raw)
		} else {
			out = append(out, piece{text: string(raw), line: line})
		}
		return nil
	}
	for _, raw := range list {
		if err := add(raw, 1); err != nil {
			return nil, err
		}
	}
	if list != nil {
		return out, nil
	}
	for in := json.NewDecoder(strings.NewReader(text)); ; {
		var raw json.RawMessage
		err := in.Decode(&raw)
		at := min(int(in.InputOffset()), len(text))
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			rest := strings.TrimSpace(text[at:])
			return append(out, piece{text: rest, line: lineOf(text, at)}), nil
		case err != nil:
			return nil, atLine{lineOf(text, at), fmt.Errorf("broken JSON: %w", err)}
		}
		if err := add(raw, lineOf(text, at-len(raw))); err != nil {
			return nil, err
		}
	}
}

// splitter cuts a text into runs: where a client connects anew after figures,
// where a server is connected to anew, and, without such lines, where a stream
// begins again at 0.
type splitter struct {
	pieces  []piece
	body    strings.Builder
	from    int
	head    string // of a server's log: what it printed before the first connection
	server  bool   // the log is a server's
	banner  bool   // a banner was seen
	figures bool   // in this piece
	any     bool   // … or in an earlier one
	report  bool   // the next line of figures is the server's report
	quoted  bool   // what follows is the server's output, which the client repeats
	joining bool   // "Client connecting" in a server's log: -d or -r goes the other way
	streams map[string]*stream
}

// stream is what a piece has of one id.
type stream struct {
	end         float64
	parts, done bool // it has lines beyond its first interval; its final line was read
}

func (s *splitter) take(n int, line string) {
	t := strings.TrimLeft(line, "> \t")
	id, start, end, ok := figuresOf(line)
	switch {
	case s.quoted && !strings.HasPrefix(t, "Connecting to host"):
	case strings.HasPrefix(t, "Server output:") && s.figures:
		s.quoted = true
	case ok && s.report: // the same stream, as the server counted it
		s.report = false
	case ok:
		// Under a banner only a final line that comes again is a run without one.
		if s.again(id, start, end) && (!s.banner || s.streams[id].done) {
			s.cut(n)
			s.again(id, start, end)
		}
		s.figures, s.any = true, true
	case strings.Contains(t, "Server Report:"):
		s.report = true
	case strings.HasPrefix(t, "Client connecting to"), strings.HasPrefix(t, "Connecting to host"):
		switch {
		case s.server && s.figures:
			s.joining = true
		case s.figures:
			s.cut(n)
		default:
			s.server = false // with -d and -r a client listens first
		}
		s.banner = true
	case strings.HasPrefix(t, "Server listening on"):
		if s.figures {
			s.cut(n)
		}
		s.server, s.banner = s.server || !s.banner, true
	case strings.HasPrefix(t, "Accepted connection from"):
		if s.figures {
			s.cut(n)
		}
	case strings.Contains(t, " connected with ") || strings.Contains(t, " connected to "):
		if s.server && s.head == "" {
			s.head = s.body.String()
		}
		if s.figures && (s.server || !s.banner) && !s.joining {
			s.cut(n)
		}
	}
	if s.body.Len() == 0 && s.from == 0 {
		s.from = n
	}
	s.body.WriteString(line)
}

// again says that a stream begins anew: a line from 0 of an id whose final line
// was read, or that has nothing but a line from 0.
func (s *splitter) again(id string, start, end float64) bool {
	if s.streams == nil {
		s.streams = map[string]*stream{}
	}
	x := s.streams[id]
	switch {
	case x == nil:
		s.streams[id] = &stream{end: end, parts: start > 0}
	case start > 0:
		x.parts, x.end = true, math.Max(x.end, end)
	case x.done || !x.parts:
		return true
	default:
		x.done, x.end = true, math.Max(x.end, end)
	}
	return false
}

func (s *splitter) cut(next int) {
	text := s.body.String()
	s.body.Reset()
	if strings.TrimSpace(text) != "" {
		p := piece{text: text, line: s.from, idle: s.server && !s.figures}
		if s.server {
			p.process = iperf.Server
			if !strings.HasPrefix(text, s.head) {
				p.text = s.head + text
			}
		}
		s.pieces = append(s.pieces, p)
	}
	s.from, s.figures, s.joining, s.quoted, s.report, s.streams = next, false, false, false, false, nil
}

// figuresOf reads id and interval of a line of figures, text or CSV.
func figuresOf(line string) (id string, start, end float64, ok bool) {
	m := figureLine.FindStringSubmatch(line)
	if c := csvLine.FindStringSubmatch(line); c != nil {
		// A client's CSV has the server's report of the same stream, with more fields.
		m = []string{"", fmt.Sprint(c[1], " ", c[2], " ", c[3], " ", strings.Count(line, ",")), c[4], c[5]}
	}
	for _, role := range []string{iperf.Sender, iperf.Receiver} { // iperf3's final lines
		if m != nil && strings.HasSuffix(strings.TrimSpace(line), role) {
			m = []string{"", m[1] + role, m[2], m[3]}
		}
	}
	if m == nil || strings.EqualFold(m[1], "ID") {
		return "", 0, 0, false
	}
	start, err1 := strconv.ParseFloat(m[2], 64)
	end, err2 := strconv.ParseFloat(m[3], 64)
	return m[1], start, end, err1 == nil && err2 == nil
}
