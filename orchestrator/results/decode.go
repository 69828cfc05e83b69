package results

import (
	"bytes"
	"encoding/json"

	"kernsweep/targets"
	"kernsweep/workloads"
)

// decoder reads records as this package writes them, several times faster than
// encoding/json and with the texts that return in every record kept once. It
// gives up at the first byte it does not expect: encoding/json then has the word.
type decoder struct {
	texts map[string]string
	b     []byte
	i     int
	bad   bool
	rec   Record // under way
}

// mostTexts bounds the table of texts; longText is what is not put there.
const (
	mostTexts = 1 << 14
	longText  = 128
)

// record decodes a whole line's JSON.
func (d *decoder) record(body []byte) (Record, error) {
	if d.texts == nil {
		d.texts = map[string]string{}
	}
	d.b, d.i, d.bad, d.rec = body, 0, false, Record{}
	d.object(func(key string) int { return d.recordField(&d.rec, key) })
	if !d.bad && d.i == len(body) {
		return d.rec, nil
	}
	d.rec = Record{}
	err := json.Unmarshal(body, &d.rec)
	return d.rec, err
}

// recordField reads the field that key names and returns its place in the order
// of writing; 0: there is no such field.
func (d *decoder) recordField(r *Record, key string) int {
	switch key {
	case "seq":
		r.Seq = d.int()
		return 1
	case "run":
		r.Run = d.text()
		return 2
	case "lane":
		r.Lane = d.text()
		return 3
	case "lane_seq":
		r.LaneSeq = d.int()
		return 4
	case "at":
		d.check(r.At.UnmarshalJSON(d.raw()))
		return 5
	case "up_ms":
		r.UpMS = int64(d.int())
		return 6
	case "kind":
		r.Kind = Kind(d.text())
		return 7
	case "slot":
		r.Slot = d.slot()
		return 8
	case "attempt":
		r.Attempt = d.int()
		return 9
	case "phase":
		r.Phase = targets.Phase(d.text())
		return 10
	case "boot":
		return d.other(&r.Boot, 11)
	case "outcome":
		r.Outcome = Outcome(d.text())
		return 12
	case "reason":
		r.Reason = d.text()
		return 13
	case "collect":
		r.Collect = d.text()
		return 14
	case "parsed":
		r.Parsed = d.parsed()
		return 15
	}
	return d.laterField(r, key)
}

func (d *decoder) laterField(r *Record, key string) int {
	switch key {
	case "activity":
		return d.other(&r.Summary, 16)
	case "peer_activity":
		return d.other(&r.Peer, 17)
	case "note":
		r.Note = d.text()
		return 18
	case "task":
		return d.other(&r.Task, 19)
	case "knob":
		return d.other(&r.Knob, 20)
	case "cut":
		return d.other(&r.Cut, 21)
	case "enough":
		return d.other(&r.Enough, 22)
	case "findings":
		return d.other(&r.Findings, 23)
	}
	return 0
}

func (d *decoder) slot() *Slot {
	s := &Slot{}
	d.object(func(key string) int {
		switch key {
		case "target":
			s.Target = d.text()
			return 1
		case "kernel":
			s.Kernel = d.text()
			return 2
		case "workload":
			s.Workload = d.text()
			return 3
		case "scenario":
			s.Scenario = d.text()
			return 4
		case "block":
			s.Block = d.int()
			return 5
		case "repeat":
			s.Repeat = d.int()
			return 6
		case "boot":
			s.Boot = d.int()
			return 7
		}
		return 0
	})
	return s
}

func (d *decoder) parsed() *workloads.Parsed {
	p := &workloads.Parsed{}
	d.object(func(key string) int {
		switch key {
		case "values":
			p.Values = []workloads.Value{}
			d.list(func() { p.Values = append(p.Values, d.value()) })
			p.Values = exact(p.Values)
			return 1
		case "warnings":
			p.Warnings = d.textList()
			return 2
		case "notes":
			p.Notes = d.textList()
			return 3
		}
		return 0
	})
	return p
}

// exact gives back what append took too much: a run holds very many of them.
func exact(list []workloads.Value) []workloads.Value {
	if cap(list) == len(list) {
		return list
	}
	return append(make([]workloads.Value, 0, len(list)), list...)
}

func (d *decoder) value() workloads.Value {
	var v workloads.Value
	d.object(func(key string) int {
		switch key {
		case "name":
			v.Name = d.text()
			return 1
		case "unit":
			v.Unit = d.text()
			return 2
		case "better":
			v.Better = workloads.Direction(d.text())
			return 3
		case "primary":
			v.Primary = d.bool()
			return 4
		case "value":
			v.Value = d.float()
			return 5
		case "missing":
			v.Missing = d.text()
			return 6
		case "resolution":
			v.Resolution = d.float()
			return 7
		case "n":
			v.N = d.int()
			return 8
		case "sd":
			v.SD = d.float()
			return 9
		case "each":
			v.Each = d.floats()
			return 10
		}
		return 0
	})
	return v
}

// floats of a list; its length is known from its commas.
func (d *decoder) floats() []float64 {
	end := bytes.IndexByte(d.b[d.i:], ']')
	if end < 0 {
		d.bad = true
		return nil
	}
	out := make([]float64, 0, bytes.Count(d.b[d.i:d.i+end], []byte{','})+1)
	d.list(func() { out = append(out, d.float()) })
	return out
}

func (d *decoder) textList() []string {
	out := []string{}
	d.list(func() { out = append(out, d.text()) })
	return out
}
