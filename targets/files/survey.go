package files

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"kernsweep/targets"
)

//go:embed survey.sh
var surveyScript string

// survey is what is known of a target before anything is sent.
type survey struct {
	into  bool
	room  int64 // bytes; -1: not known
	tar   bool
	sum   int            // of sumKinds; -1: the target has none
	there map[int]lying  // by the file's number
	files map[int]*entry // the same numbers
}

// lying is a file on the target.
type lying struct {
	sum  string
	stat string // mode in octal and seconds; "": not known
}

// script runs a script of POSIX sh and returns what it printed.
func script(ctx context.Context, c targets.Conn, text, in string, args ...string) (string, error) {
	var out answer
	var errs tail
	argv := append([]string{"/bin/sh", "-c", "LC_ALL=C; export LC_ALL\n" + text, "sh"}, args...)
	exit, err := c.Run(ctx, targets.Cmd{Argv: argv, Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errs})
	if err != nil {
		return "", err
	}
	if !exit.OK() {
		return "", &Failed{said(errs.String(), exit)}
	}
	return out.String(), nil
}

// answer keeps what a script prints, which is never much.
type answer struct{ strings.Builder }

func (a *answer) Write(b []byte) (int, error) {
	const most = 32 << 20
	if a.Len()+len(b) > most {
		return 0, &Failed{"the target answers without end"}
	}
	return a.Builder.Write(b)
}

// Failed is an error of the target's file system, in its words. The link is good.
type Failed struct{ Why string }

func (e *Failed) Error() string { return e.Why }

// said is the last line of what a program complained of.
func said(text string, exit targets.Exit) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return "the command on the target " + exit.String()
}

func (p *Parcel) survey(ctx context.Context, c targets.Conn) (*survey, error) {
	s := &survey{room: -1, sum: -1, there: map[int]lying{}, files: map[int]*entry{}}
	var names strings.Builder
	for _, e := range p.entries {
		if e.isFile() {
			s.files[len(s.files)] = e
			names.WriteString(e.rel + "\n")
		}
	}
	into := "0"
	if p.into {
		into = "1"
	}
	out, err := script(ctx, c, surveyScript, names.String(), p.dest, into)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if lines[len(lines)-1] != "end" {
		return nil, &Failed{fmt.Sprintf("the shell of the target does not do what a POSIX shell does: its answer ends with %q", lines[len(lines)-1])}
	}
	s.read(lines[:len(lines)-1])
	return s, nil
}

// read takes the answer in.
func (s *survey) read(lines []string) {
	for i := 0; i < len(lines); i++ {
		word, rest, _ := strings.Cut(lines[i], " ")
		switch word {
		case "into":
			s.into = rest == "1"
		case "room":
			s.room = roomOf(rest)
		case "tar":
			s.tar = true
		case "sums":
			for k, kind := range sumKinds() {
				if kind.program == rest {
					s.sum = k
				}
			}
		case "have":
			end := i + 1
			for end < len(lines) && !strings.HasPrefix(lines[end], "have ") {
				end++
			}
			s.have(strings.Fields(rest), lines[i+1:end])
			i = end - 1
		}
	}
}

// have takes the sums of some files in, and what stat says of them. Where one of
// them could not be summed up, nothing is known of any.
func (s *survey) have(numbers, lines []string) {
	var stats, sums []string
	for _, l := range lines {
		if facts, ok := strings.CutPrefix(l, "stat "); ok {
			stats = append(stats, facts)
		} else {
			sums = append(sums, l)
		}
	}
	if len(sums) != len(numbers) {
		return
	}
	for i, text := range numbers {
		n, err := strconv.Atoi(text)
		fields := strings.Fields(strings.TrimPrefix(sums[i], `\`))
		if err != nil || len(fields) == 0 {
			continue
		}
		l := lying{sum: fields[0]}
		if sumKinds()[max(s.sum, 0)].program == "cksum" && len(fields) > 1 {
			l.sum += " " + fields[1]
		}
		if len(stats) == len(numbers) {
			l.stat = stats[i]
		}
		s.there[n] = l
	}
}

// roomOf reads df -Pk: "/dev/sda1 1024 512 512 50% /mnt"; the last name may have
// spaces, the first too.
func roomOf(line string) int64 {
	fields := strings.Fields(line)
	for i := 3; i < len(fields); i++ {
		if !strings.HasSuffix(fields[i], "%") {
			continue
		}
		if kb, err := strconv.ParseInt(fields[i-1], 10, 64); err == nil && kb >= 0 {
			return kb * 1024
		}
	}
	return -1
}

// same says that file n lies there with the content of e.
func (s *survey) same(n int, e *entry) (bool, error) {
	there, ok := s.there[n]
	if !ok || s.sum < 0 {
		return false, nil
	}
	sum, err := e.sums[s.sum]()
	return sum == there.sum, err
}
