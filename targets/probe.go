package targets

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

//go:embed probe.sh
var probeScript string

// maxProbe bounds a probe's output, in bytes; the script caps dmesg at 256 KiB.
const maxProbe = 8 << 20

// Evidence is what one probe of a running system found.
type Evidence struct {
	// Files are the sections as printed, by file name, for the run directory.
	Files map[string][]byte
	// Sched are scheduler knobs and states: path -> first line.
	Sched map[string]string
	// Config are the kernel's options, without CONFIG_; nil when not to be had.
	Config map[string]string
	// Missing says why a section is absent: name -> reason.
	Missing map[string]string
}

// Probe runs one script on a machine, with one exec. Its error is the link's, or
// says that the output is incomplete.
func Probe(ctx context.Context, conn Conn) (*Evidence, error) {
	var n [8]byte
	_, _ = rand.Read(n[:]) // never fails
	mark := hex.EncodeToString(n[:])
	var out, errs bytes.Buffer
	e, err := conn.Run(ctx, Cmd{
		Argv: []string{"sh", "-s"}, Stdin: strings.NewReader("M=" + mark + "\n" + probeScript),
		Stdout: limited(&out, maxProbe), Stderr: limited(&errs, 4096),
	})
	if err != nil {
		return nil, err
	}
	ev, err := readProbe(out.Bytes(), mark)
	if err != nil {
		return nil, fmt.Errorf("%w (the shell %s, and said %.200q)", err, e, errs.Bytes())
	}
	return ev, nil
}

// readProbe cuts the output into its sections.
func readProbe(out []byte, mark string) (*Evidence, error) {
	ev := &Evidence{Files: map[string][]byte{}, Missing: map[string]string{}}
	sep := []byte("\n@@" + mark + " ")
	parts := bytes.Split(append([]byte("\n"), out...), sep)
	ended := false
	for _, p := range parts[1:] {
		name, body, _ := bytes.Cut(p, []byte("\n"))
		if string(name) == "end" {
			ended = true
			continue
		}
		ev.Files[string(name)] = body
	}
	if !ended {
		return nil, fmt.Errorf("the probe's output is cut off after %d bytes", len(out))
	}
	for _, name := range []string{"cpuinfo", "cmdline", "version", "mounts", "self_sched", "online", "dmesg"} {
		if _, ok := ev.Files[name]; !ok {
			ev.Missing[name] = "not readable on the target"
		}
	}
	ev.Sched = pairs(ev.Files["sched"])
	ev.readConfig()
	if d := ev.Files["dmesg"]; bytes.HasPrefix(d, []byte("dmesg: ")) || len(bytes.TrimSpace(d)) == 0 {
		ev.Missing["dmesg"] = strings.TrimSpace("not permitted or not there: " + firstLine(d))
		delete(ev.Files, "dmesg")
	}
	return ev, nil
}

func (ev *Evidence) readConfig() {
	text := ev.Files["config"]
	if z := ev.Files["config.gz"]; z != nil {
		if r, err := gzip.NewReader(bytes.NewReader(z)); err == nil {
			text, err = io.ReadAll(io.LimitReader(r, maxProbe))
			if err != nil {
				ev.Missing["config"] = "config.gz: " + err.Error()
			}
		} else {
			ev.Missing["config"] = "config.gz: " + err.Error()
		}
	}
	if len(text) == 0 {
		if ev.Missing["config"] == "" {
			ev.Missing["config"] = "neither /proc/config.gz nor a config-RELEASE in /boot or /lib/modules is readable"
		}
		return
	}
	ev.Config = map[string]string{}
	for line := range strings.Lines(string(text)) {
		k, v, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && strings.HasPrefix(k, "CONFIG_") {
			ev.Config[strings.TrimPrefix(k, "CONFIG_")] = strings.Trim(v, `"`)
		}
	}
}

// pairs reads "key=value" lines.
func pairs(text []byte) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "="); ok && k != "" {
			m[k] = strings.TrimSpace(v)
		}
	}
	return m
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
	return strings.ToValidUTF8(strings.TrimSpace(string(line)), "?")
}
