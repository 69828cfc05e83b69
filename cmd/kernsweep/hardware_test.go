package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"kernsweep/targets/targetstest"
)

// TestHardware runs the scripts in testdata/hardware on a PC of QEMU's with a
// disk, GRUB, a serial line behind TCP and a supply behind HTTP: everything that
// kernsweep knows of it stands in a testbeds file.
func TestHardware(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	disk := t.TempDir()
	if out, err := exec.Command(filepath.Join(root, "scripts/lab.d/grubdisk"), disk).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port := targetstest.FreePort(t)
	m := targetstest.NewMachine(t, "qemu-system-x86_64", "-M", "q35", "-accel", "tcg", "-cpu", "max,-cx16", "-m", "320",
		"-drive", "if=none,id=d0,format=raw,cache=writethrough,file="+disk+"/disk.img", "-device", "virtio-blk-pci,drive=d0,bootindex=0",
		"-netdev", fmt.Sprintf("user,id=n0,hostfwd=tcp:127.0.0.1:%d-:22", port), "-device", "virtio-net-pci,netdev=n0,romfile=")
	key, err := os.ReadFile(filepath.Join(root, "lab/keys/host_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/hardware",
		Setup: func(e *testscript.Env) error {
			for name, value := range map[string]string{"ROOT": root, "HOME": e.WorkDir, "GOCACHE": os.Getenv("GOCACHE"),
				"DISK": disk, "CONSOLE": m.Address, "POWER": m.URL, "PORT": fmt.Sprint(port), "HOSTKEY": strings.TrimSpace(string(key))} {
				e.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"fill": fill},
	})
}
