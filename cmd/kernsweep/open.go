package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

// browserTime is how long a browser may take to say that it cannot.
const browserTime = 2 * time.Second

func (a *app) openCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "open [RUN]",
		Short: "Show a run's report.html in a browser, or say how to get there",
		Long: `Show a run's report.html in a browser; it is written anew when it is older than what was measured. RUN is a name, a
beginning of it, a path, or "latest", which it is where nothing is said.

The browser is that of $BROWSER, else xdg-open, open (macOS) or wslview. Over SSH, and where there is no display, nothing is
started: the path is printed, with how to fetch the page.

Exit status: 0 the page is shown, or its place was said.`,
		Example: "  kernsweep open\n  kernsweep open 20261130",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			run, err := a.findRun(append(args, "latest")[0])
			if err != nil {
				return err
			}
			page, err := a.freshPage(run)
			if err != nil {
				return err
			}
			return a.show(c.Context(), run, page)
		},
	}
}

// freshPage is the path of the run's page, which is written when it is missing or
// older than the journal. Where nothing can be written the old one will do.
func (a *app) freshPage(run *results.Run) (string, error) {
	page, err := filepath.Abs(filepath.Join(run.Dir(), "report.html"))
	if err != nil {
		return "", err
	}
	have, old := os.Stat(page)
	if journal, err := os.Stat(filepath.Join(run.Dir(), "journal.jsonl")); old == nil && err == nil && !have.ModTime().Before(journal.ModTime()) {
		return page, nil
	}
	err = writeFileFrom(page, func(w io.Writer) error {
		return report.Write(w, run, report.Options{Format: "html", Kernsweep: a.calledFor(run)})
	})
	if err != nil && old == nil {
		fmt.Fprintf(a.err, "kernsweep: this page is of %s, and cannot be written anew: %s\n", have.ModTime().Format("2006-01-02 15:04"), live.Safe(err.Error()))
		err = nil
	}
	return page, err
}

// show opens the page in a browser of this machine, or says where it is.
func (a *app) show(ctx context.Context, run *results.Run, page string) error {
	why := a.noBrowser()
	if why == "" {
		var tried []string
		for _, argv := range a.browsers(page) {
			if _, err := exec.LookPath(argv[0]); err != nil {
				continue
			}
			err := browse(ctx, argv)
			if err == nil {
				fmt.Fprintf(a.err, "shown by %s: %s\n", live.Safe(argv[0]), live.Safe(page))
				return nil
			}
			tried = append(tried, fmt.Sprintf("%s: %v", argv[0], err))
		}
		if why = "there is no browser here (none of $BROWSER, xdg-open, open, wslview)"; len(tried) > 0 {
			why = "no browser shows it (" + strings.Join(tried, "; ") + ")"
		}
	}
	fmt.Fprintln(a.out, live.Safe(page))
	host, err := os.Hostname()
	if err != nil {
		host = "HOST"
	}
	fmt.Fprintf(a.err, "%s; from your desk:\n  scp %s:%s .\n  or here, for a browser elsewhere: %s serve\n  or as text: %s\n", live.Safe(why),
		live.Safe(who()+"@"+host), live.Safe(paste.Word(page)), a.kernsweep(), a.command("report", run))
	return nil
}

// noBrowser says why none can be shown on this screen, "" when one may.
func (a *app) noBrowser() string {
	is := func(name string) bool { v, _ := a.env(name); return v != "" }
	switch {
	case is("BROWSER"): // somebody knows better
		return ""
	case is("SSH_CONNECTION") || is("SSH_TTY"):
		return "this is a login over SSH"
	case runtime.GOOS == "darwin" || is("DISPLAY") || is("WAYLAND_DISPLAY") || is("WSL_DISTRO_NAME"):
		return ""
	}
	return "this machine shows no windows here"
}

// browsers are the commands that may show a page, the best first. $BROWSER is a
// list joined by colons, of programs with arguments; %s in one is the page. No
// shell looks at any of it.
func (a *app) browsers(page string) [][]string {
	var list [][]string
	wanted, _ := a.env("BROWSER")
	for _, b := range strings.Split(wanted, ":") {
		argv, placed := strings.Fields(b), false
		if len(argv) == 0 {
			continue
		}
		for i := range argv {
			if i > 0 && strings.Contains(argv[i], "%s") {
				argv[i], placed = strings.ReplaceAll(argv[i], "%s", page), true
			}
		}
		if !placed {
			argv = append(argv, page)
		}
		list = append(list, argv)
	}
	if runtime.GOOS == "darwin" { // elsewhere open is another program
		return append(list, []string{"open", page})
	}
	return append(list, []string{"xdg-open", page}, []string{"wslview", page})
}

// browse starts a browser and leaves it alone, once it has had time to fail. The
// page's path is absolute, so none can take it for a flag.
func browse(ctx context.Context, argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives this terminal
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the browser, or with us
	t := time.NewTimer(browserTime)
	defer t.Stop()
	select {
	case err := <-ended:
		return err
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
