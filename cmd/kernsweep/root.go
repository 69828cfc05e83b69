package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plural"
)

// Exit statuses (DESIGN.md section 6); a run's own come from results.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInfra       = 3
	exitInterrupted = 130
)

// statusError carries an exit status; a nil Err prints nothing.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// usage marks an error as the user's: status 2.
func usage(err error) error { return &statusError{exitUsage, err} }

// app is what every command shares.
type app struct {
	claiming
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)

	file    string
	runs    string
	vars    []string
	json    bool
	noColor bool
	verbose bool

	args     []string  // the command line
	signals  *signals  // nil: in a test
	detached *detached // nil: it has a terminal, or whatever started it
	outlets  []*outlet // of a run
	pipes    func()    // what a closed pipe does is as before; nil: it is
}

// execute runs one command line and returns its exit status.
func execute(ctx context.Context, args []string, in io.Reader, out, errw io.Writer, env func(string) (string, bool)) int {
	return new(app).main(ctx, args, in, out, errw, env)
}

// main is execute for an app that knows its signals.
func (a *app) main(ctx context.Context, args []string, in io.Reader, out, errw io.Writer, env func(string) (string, bool)) int {
	output := &checked{w: out}
	errw = said{errw}
	a.in, a.out, a.err, a.env, a.args = in, output, errw, env, args
	defer a.closeOutlets(ctx)
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(output)
	root.SetErr(errw)
	err := root.ExecuteContext(ctx)
	errw = a.err
	if err == nil && output.err != nil {
		err = output.err // a full disk must not look like an empty report
	}
	var s *statusError
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(errw, "kernsweep: interrupted")
		return exitInterrupted
	case errors.As(err, &s):
		if s.err != nil {
			fmt.Fprintln(errw, "kernsweep: "+oneVoice(s.err))
		}
		return s.status
	case ctx.Err() != nil:
		fmt.Fprintln(errw, "kernsweep: interrupted")
		return exitInterrupted
	default:
		fmt.Fprintln(errw, "kernsweep: "+oneVoice(err))
		return exitInfra // the controller's own trouble says nothing of a kernel
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "kernsweep",
		Short:         "Run kernel sweeps over a lab overnight and say in the morning what was measured",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	f := root.PersistentFlags()
	f.StringVarP(&a.file, "file", "f", "testbeds.hcl", "configuration: a file, or a folder of *.hcl files")
	f.StringVar(&a.runs, "runs", "runs", "folder of the run directories")
	f.StringArrayVar(&a.vars, "var", nil, "set a variable of the configuration, name=value")
	f.BoolVar(&a.json, "json", false, "print JSON instead of text, where a command prints data")
	f.BoolVar(&a.noColor, "no-color", false, "no colour and no cursor movement")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "log what is done to standard error")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(wrongFlag(c, err)) })
	root.AddCommand(&cobra.Command{Use: "testbeds", Short: "Every block and attribute of testbeds.hcl", Long: config.Reference()})
	root.AddCommand(a.schemaCmd())
	root.AddCommand(
		a.validateCmd(),
		a.fmtCmd(),
		a.planCmd(),
		a.leasing(a.runCmd()),
		a.leasing(a.resumeCmd()),
		a.leasing(a.rerunCmd()),
		a.statusCmd(),
		a.logCmd(),
		a.openCmd(),
		a.watchCmd(),
		a.stopCmd(),
		a.laneCmd(),
		a.reportCmd(),
		a.compareCmd(),
		a.importCmd(),
		a.pruneCmd(),
		a.targetCmd(),
		a.execCmd(),
		a.pushCmd(),
		a.pullCmd(),
		a.shellCmd(),
		a.leasing(a.bootCmd()),
		a.leasing(a.powerCmd()),
		a.leasing(a.consoleCmd()),
		a.notifyCmd(),
		a.serveCmd(),
		a.manCmd(),
		a.versionCmd(),
	)
	a.detachable(root, "run", "rerun", "resume")
	strict(root)
	overview(root)
	a.completions(root)
	return root
}

// load reads the configuration; any error ends the command with status 2 before
// anything is contacted. Warnings are for validate: elsewhere their number is
// enough, and of what only other plans need nothing is said.
func (a *app) load() (*config.Lab, error) {
	lab, warnings, err := a.loadAll()
	n := 0
	for _, w := range warnings {
		if !w.Later {
			n++
		}
	}
	if n > 0 && err == nil {
		fmt.Fprintf(a.err, "%s: %s; kernsweep validate prints them\n", a.file, plural.Of(n, "warning"))
	}
	return lab, err
}

// loadAll is load, and gives the warnings back.
func (a *app) loadAll() (*config.Lab, []config.Diagnostic, error) {
	vars, err := a.variables()
	if err != nil {
		return nil, nil, err
	}
	lab, diags := config.Load(a.file, vars, a.env)
	if diags.HasErrors() {
		for _, d := range diags {
			fmt.Fprintln(a.err, d)
		}
		return nil, nil, &statusError{status: exitUsage}
	}
	return lab, diags, nil
}

// logger writes structured lines to standard error: warnings, or with --verbose
// everything.
func (a *app) logger() *zap.Logger {
	level := zapcore.ErrorLevel
	if a.verbose {
		level = zapcore.DebugLevel
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(enc), zapcore.AddSync(a.err), level))
}

// terminal says whether progress may move the cursor, and how wide it is.
func (a *app) terminal() (width func() int, ok bool) {
	w := rawOutput(a.err)
	if o, ok := w.(*outlet); ok {
		w = o.w
	}
	f, isFile := w.(*os.File)
	if !isFile || a.noColor || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	if t, _ := a.env("TERM"); t == "dumb" {
		return nil, false
	}
	return func() int { return terminalWidth(f) }, true
}

// terminalWidth is how many columns a terminal has.
func terminalWidth(f *os.File) int {
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w <= 0 { // a serial line does not know its width
		return 80
	}
	return w
}
