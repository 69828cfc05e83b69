package boot

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf16"

	"kernsweep/targets"
)

const oneShotVar = efivars + "/LoaderEntryOneShot-" + loaderGUID

// oneShotBytes are the variable as efivarfs takes it (kernel
// Documentation/filesystems/efivarfs.rst): attributes "non-volatile, at boot
// and at run time", then the entry's id in UTF-16 with a final zero.
func oneShotBytes(id string) []byte {
	b := []byte{7, 0, 0, 0}
	for _, u := range append(utf16.Encode([]rune(id)), 0) {
		b = append(b, byte(u), byte(u>>8))
	}
	return b
}

// A variable is written by one write(2), which a shell's printf makes of so few
// bytes. The kernel makes variables immutable, against rm -r.
const oneShotScript = `v=$1
[ ! -e "$v" ] || chattr -i "$v" 2>/dev/null
printf "$2" >"$v" || exit 1
{ od -A n -v -t x1 "$v" || hexdump -v -e '1/1 "%02x"' "$v"; } 2>/dev/null | tr -d ' \n'`

// setOneShot makes the next start take the entry id, and reads that back.
func setOneShot(ctx context.Context, conn targets.Conn, id string) error {
	b := oneShotBytes(id)
	var escaped strings.Builder
	for _, c := range b {
		fmt.Fprintf(&escaped, `\%03o`, c)
	}
	got, err := shell(ctx, conn, oneShotScript, oneShotVar, escaped.String())
	switch {
	case err != nil && strings.Contains(strings.ToLower(err.Error()), "no space left"):
		return fmt.Errorf("the firmware has no room for the variable LoaderEntryOneShot (variables named dump-* in %s are left by crashes and may be removed): %w", efivars, err)
	case err != nil:
		return fmt.Errorf("setting the variable LoaderEntryOneShot: %w", err)
	case got != fmt.Sprintf("%x", b):
		clearOneShot(ctx, conn)
		return fmt.Errorf("the variable LoaderEntryOneShot reads %q after it was set to the entry %s: does the firmware keep variables?", got, id)
	}
	return nil
}

// clearOneShot takes a one-shot back whose start was not asked for, so that it
// does not surprise whoever starts the machine next.
func clearOneShot(ctx context.Context, conn targets.Conn) {
	ctx, stop := targets.Afterwards(ctx, cleanTime)
	defer stop()
	_, _ = shell(ctx, conn, `chattr -i "$1" 2>/dev/null; rm -f "$1"`, oneShotVar) // the failure that led here is the one that matters
}
