package agent

const usage = `usage: agent run FLAGS TASK…    run a task, print its spool
       agent collect -spool FILE [-pid P -start S] [-wait D] [-within D] [-keep]
                                wait for a detached run and print its spool
       agent stop -spool FILE | -pid P -start S
                                end the task of a detached run
       agent kexec load KERNEL INITRD|- CMDLINE
                                load a kernel with kexec_file_load
       agent kexec jump         start the loaded kernel, at once
       agent --self-test        does this machine run the agent?
`

// Main runs the agent with args, those after the program's name, and returns
// the exit status: 0, or 2 with a line on stderr.
func Main(args []string) int {
	if len(args) == 0 {
		return die(failure("no command given\n" + usage))
	}
	switch args[0] {
	case "run":
		return runTask(args[1:])
	case "collect":
		return collect(args[1:])
	case "stop":
		return stop(args[1:])
	case "kexec":
		return kexec(args[1:])
	case "child":
		return runChild(args[1:])
	case "--self-test":
		return testMachine()
	}
	return die(failure("unknown command " + args[0] + "\n" + usage))
}

func runChild(args []string) int {
	if len(args) > 0 {
		if c := child(args[0]); c != nil {
			return c(args[1:])
		}
	}
	return die(failure("child: no such code in this agent"))
}
