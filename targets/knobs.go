package targets

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
)

// UnavailableError says that something cannot be had on this target, kernel or
// scheduler: n/a with this reason, and no failure.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return e.Reason }

// Knob is a file of the kernel that was written, and what it said before and
// after.
type Knob struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	Want string `json:"want"`
	Got  string `json:"got"`            // read back after writing
	Also []Knob `json:"also,omitempty"` // set with it, restored with it
	Note string `json:"note,omitempty"` // "mounted debugfs"
}

// The script prints old value, error text and value read back, each after a
// marker line. "$1" is the path, "$2" the value.
const knobScript = `
[ -e "$1" ] || { case $1 in /sys/kernel/debug/*)
	mount -t debugfs debugfs /sys/kernel/debug 2>&1 && echo "@mounted" ;;
esac; }
[ -e "$1" ] || { echo "@absent"; [ "$(id -u)" = 0 ] || { echo "@user"; id -un; }; exit 0; }
echo "@old"; cat "$1" 2>&1 || { echo "@unreadable"; exit 0; }
echo "@write"; { echo "$2" >"$1"; } 2>&1
echo "@new"; cat "$1"
exit 0`

// CheckKnob says whether p can be the path of a knob. It touches nothing.
func CheckKnob(p string) error {
	if c := path.Clean(p); c != p || !strings.HasPrefix(p, "/proc/sys/") && !strings.HasPrefix(p, "/sys/") {
		return fmt.Errorf("%s is not a file below /proc/sys or /sys", p)
	}
	return nil
}

// SetKnob writes value to the file at p (below /proc/sys or /sys), mounts debugfs
// if that is missing, and reads the value back. When the kernel refuses, clamps
// or ignores it, the old value is put back and the error is an
// *UnavailableError; any other error is the link's.
func SetKnob(ctx context.Context, conn Conn, p, value string) (Knob, error) {
	if err := CheckKnob(p); err != nil {
		return Knob{}, &UnavailableError{err.Error()}
	}
	k, said, err := writeKnob(ctx, conn, p, value)
	if err != nil || k.Got == k.Want {
		return k, err
	}
	if k.Got != k.Old {
		if _, _, err := writeKnob(ctx, conn, p, k.Old); err != nil {
			return k, err
		}
	}
	reason := fmt.Sprintf("%s: wrote %s, reads back %s", p, value, k.Got)
	if said != "" {
		reason += ": " + said
	}
	return Knob{}, &UnavailableError{reason}
}

// writeKnob writes once and returns what the shell said.
func writeKnob(ctx context.Context, conn Conn, p, value string) (Knob, string, error) {
	var out bytes.Buffer
	e, err := conn.Run(ctx, Cmd{Argv: []string{"sh", "-c", knobScript, "sh", p, value}, Stdout: limited(&out, 1<<16)})
	if err != nil {
		return Knob{}, "", err
	}
	part := map[string]string{}
	name := ""
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, "\r\n")
		switch line {
		case "@mounted", "@absent", "@user", "@unreadable", "@old", "@write", "@new":
			name = line
			part[name] = ""
		default:
			part[name] = strings.TrimSpace(part[name] + "\n" + line)
		}
	}
	if user := part["@user"]; user != "" && strings.HasPrefix(p, "/sys/kernel/debug/") {
		return Knob{}, "", &UnavailableError{fmt.Sprintf("%s is only for root, and the log-in is user %s", p, user)}
	}
	if _, absent := part["@absent"]; absent {
		return Knob{}, "", &UnavailableError{strings.TrimSpace("this kernel has no " + p + ". " + part[""])}
	}
	if _, unreadable := part["@unreadable"]; unreadable {
		return Knob{}, "", &UnavailableError{fmt.Sprintf("%s cannot be read, so it could not be restored: %s", p, part["@old"])}
	}
	if _, whole := part["@new"]; !whole || !e.OK() {
		return Knob{}, "", &UnavailableError{fmt.Sprintf("%s: could not be written: the shell %s", p, e)}
	}
	k := Knob{Path: p, Old: part["@old"], Want: strings.TrimSpace(value), Got: part["@new"]}
	if _, mounted := part["@mounted"]; mounted {
		k.Note = "mounted debugfs; it stays mounted until the next boot"
	}
	return k, part["@write"], nil
}

// Restore writes the old values back and checks them, the last set first. Its
// error names the files that do not have their old value.
func (k Knob) Restore(ctx context.Context, conn Conn) error {
	var bad []string
	for i := len(k.Also) - 1; i >= 0; i-- {
		if err := k.Also[i].Restore(ctx, conn); err != nil {
			bad = append(bad, err.Error())
		}
	}
	if k.Path != "" {
		got, said, err := writeKnob(ctx, conn, k.Path, k.Old)
		switch {
		case err != nil:
			bad = append(bad, k.Path+": "+err.Error())
		case got.Got != k.Old:
			bad = append(bad, strings.TrimSpace(fmt.Sprintf("%s is %s, was %s before the trial. %s", k.Path, got.Got, k.Old, said)))
		}
	}
	if bad != nil {
		return fmt.Errorf("knobs not restored: %s", strings.Join(bad, "; "))
	}
	return nil
}
