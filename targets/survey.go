package targets

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

//go:embed survey.sh
var surveyScript string

// maxSurvey bounds a survey's output, in bytes.
const maxSurvey = 1 << 20

// Found is a value and what it was inferred from. Without a value, Missing says why.
type Found struct {
	Value    string `json:"value,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	Missing  string `json:"missing,omitempty"`
}

// String is the value, or "n/a (reason)".
func (f Found) String() string {
	switch {
	case f.Value != "":
		return f.Value
	case f.Missing == "":
		return "n/a (the machine does not tell)"
	}
	return "n/a (" + f.Missing + ")"
}

// ServerFacts are what an SSH server shows of itself.
type ServerFacts struct {
	Version string `json:"version,omitempty"`  // "SSH-2.0-dropbear_2022.83"
	HostKey string `json:"host_key,omitempty"` // as in a .pub file
	NoSFTP  string `json:"no_sftp,omitempty"`  // why there is none, "" when there is
}

// Topology counts what the kernel says of its CPUs; 0 is unknown.
type Topology struct {
	Sockets int `json:"sockets,omitempty"`
	Cores   int `json:"cores,omitempty"`
	Threads int `json:"threads,omitempty"`
	Nodes   int `json:"numa_nodes,omitempty"`
}

// Survey is what one look at a machine found, for the one who adds it and for
// those who ask later what has changed.
type Survey struct {
	Taken     time.Time   `json:"taken"` // by the controller's clock
	Hostname  string      `json:"hostname,omitempty"`
	UID       string      `json:"uid,omitempty"`
	Running   BootRecord  `json:"running"`
	Arch      Found       `json:"arch"` // GOARCH
	ByteOrder Found       `json:"byte_order"`
	Float     Found       `json:"float"`
	Topology  Topology    `json:"topology"`
	Knobs     []string    `json:"knobs,omitempty"` // of the scheduler, paths
	Places    []Place     `json:"places,omitempty"`
	Loaders   []Found     `json:"loaders,omitempty"` // boot loaders, the likeliest first
	Methods   []Method    `json:"methods,omitempty"` // boot methods that could serve, the best first
	Server    ServerFacts `json:"ssh_server"`
	Clock     Found       `json:"clock"`
	Distro    Found       `json:"distribution"`
	BusyBox   Found       `json:"busybox"`
	Watchdog  Found       `json:"watchdog"`
	Container string      `json:"container,omitempty"` // evidence that it can boot no kernel; "" = none
	Cut       string      `json:"cut,omitempty"`       // why the look is not whole, "" when it is
	Notes     []string    `json:"notes,omitempty"`
}

// TakeSurvey looks at a machine with two commands. What they cannot find out is
// missing with a reason; the error is the link's, or says that the machine answers
// no command.
func TakeSurvey(ctx context.Context, conn Conn) (*Survey, error) {
	ev, cut, err := probeSome(ctx, conn)
	if err != nil {
		return nil, err
	}
	s := &Survey{Taken: time.Now()}
	if _, err := ev.Program(); err != nil {
		if head := catHeader(ctx, conn); head != nil {
			ev.Files["elf"] = head
		}
	}
	ev.Fill(&s.Running)
	more, at, err := ask(ctx, conn)
	if err != nil {
		return nil, err
	}
	if s.Cut = either(more.cut, cut); s.Cut != "" {
		s.Notes = append(s.Notes, "this is not everything: "+s.Cut)
	}
	r := surveyReader{Evidence: ev, more: more.files, s: s}
	r.machine()
	r.cpus()
	r.places()
	r.clock(at)
	r.system()
	r.loaders()
	r.methods()
	return s, nil
}

// probeSome is Probe with half of the time there is: what was told by then counts,
// and cut says that this is not all. A dead network file system holds df for ever.
func probeSome(ctx context.Context, conn Conn) (ev *Evidence, cut string, err error) {
	half := ctx
	if end, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		half, stop = context.WithTimeout(ctx, time.Until(end)/2)
		defer stop()
	}
	var n [8]byte
	_, _ = rand.Read(n[:]) // never fails
	mark := hex.EncodeToString(n[:])
	var out bytes.Buffer
	exit, err := conn.Run(half, Cmd{Argv: []string{"sh", "-s"}, Stdin: strings.NewReader("M=" + mark + "\n" + probeScript), Stdout: limited(&out, maxProbe)})
	switch {
	case err == nil:
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && out.Len() > 0:
		cut = "a command there did not end, such as df on a dead network file system"
		out.WriteString("\n@@" + mark + " end\n")
	default:
		return nil, "", err
	}
	if ev, err = readProbe(out.Bytes(), mark); err != nil {
		err = fmt.Errorf("%w (the shell %s)", err, exit)
	}
	return ev, cut, err
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// answer is what the script said, by section, and why it is not whole.
type answer struct {
	files map[string][]byte
	cut   string
}

// ask runs the script, and says when its first word came. What came before the
// time was up counts; a link that is lost is the error.
func ask(ctx context.Context, conn Conn) (answer, time.Time, error) {
	var n [8]byte
	_, _ = rand.Read(n[:]) // never fails
	mark := hex.EncodeToString(n[:])
	var out, errs bytes.Buffer
	first := &firstTime{w: limited(&out, maxSurvey)}
	exit, err := conn.Run(ctx, Cmd{
		Argv: []string{"sh", "-s"}, Stdin: strings.NewReader("M=" + mark + "\n" + surveyScript),
		Stdout: first, Stderr: limited(&errs, 4096),
	})
	a := answer{files: map[string][]byte{}}
	for i, p := range bytes.Split(append([]byte("\n"), out.Bytes()...), []byte("\n@@"+mark+" ")) {
		if name, body, _ := bytes.Cut(p, []byte("\n")); i > 0 {
			a.files[string(name)] = body
		}
	}
	if _, whole := a.files["survey_end"]; whole {
		return a, first.at, nil // also when the link broke right after
	}
	tidy(ctx, conn, strings.TrimSpace(string(a.files["pid"])))
	switch {
	case err != nil && (len(a.files) == 0 || !errors.Is(err, context.DeadlineExceeded)):
		return a, first.at, err
	case err != nil:
		a.cut = "the time was up before it had told everything"
	default:
		a.cut = fmt.Sprintf("its answer is cut off after %d bytes (the shell %s)", out.Len(), exit)
	}
	return a, first.at, nil
}

// tidyTime bounds what is done after a survey that was cut short.
const tidyTime = time.Second

// tidy removes what a survey that was killed could not. One whose link is gone
// does it itself.
func tidy(ctx context.Context, conn Conn, pid string) {
	if _, err := strconv.Atoi(pid); err != nil {
		return
	}
	ctx, stop := Afterwards(ctx, tidyTime)
	defer stop()
	// Without a link there is nobody to ask.
	_, _ = conn.Run(ctx, Cmd{Argv: []string{"sh", "-c", `for d in "$HOME" /dev/shm /tmp /run /var/run /var/tmp /root /opt /usr/local /overlay /jffs /data /mnt /srv; do
	rm -f "$d/.kernsweep-try-$1"; done`, "sh", pid}})
}

// firstTime notes when the first bytes came.
type firstTime struct {
	w  io.Writer
	at time.Time
}

func (f *firstTime) Write(b []byte) (int, error) {
	if f.at.IsZero() {
		f.at = time.Now()
	}
	return f.w.Write(b)
}

// errEnough ends a command of which enough was read.
var errEnough = errors.New("enough")

// header keeps the first 64 bytes, and wants no more.
type header struct{ b []byte }

func (h *header) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), 64-len(h.b))]...)
	if len(h.b) == 64 {
		return 0, errEnough
	}
	return len(p), nil
}

// catHeader reads a program's header where the machine has nothing that cuts a
// file; nil when there is none. Whoever reads a file for it has it sent.
func catHeader(ctx context.Context, conn Conn) []byte {
	for _, file := range []string{"/proc/self/exe", "/bin/busybox", "/bin/sh"} {
		var h header
		_, err := conn.Run(ctx, Cmd{Argv: []string{"cat", file}, Stdout: &h})
		if err != nil && !errors.Is(err, errEnough) {
			return nil
		}
		if _, err := ProgramFromELF(h.b, ""); err == nil {
			return h.b
		}
	}
	return nil
}
