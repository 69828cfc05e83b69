// Package agent is the program that runs on a target: it runs one task, samples
// /proc meanwhile, and spools everything in the wire format. It keeps to law 2:
// no fmt, reflect, net, encoding/json, context, compress, crypto, os/exec or
// os/signal, and no third-party module, so that it fits small devices. Package
// os is left out too, for its size.
//
// While a task runs, one thread does everything from one epoll_wait: it samples,
// drains the task's output and keeps the deadlines. The end record carries the
// agent's own cost, so this measures it on any machine:
//
//	kernsweep-agent run -sample 1s exec -- sleep 30
//
// rss_kb is its largest resident set, cpu_us the CPU time it used, start and
// end included; with -sample 0s the same command shows those alone.
package agent
