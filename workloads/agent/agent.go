// Package agent is the program that runs on a target: it runs one task, samples
// /proc meanwhile, and spools everything in the wire format. It keeps to law 2:
// no fmt, reflect, net, encoding/json, context, compress, crypto, os/exec or
// os/signal, and no third-party module, so that it fits small devices.
package agent
