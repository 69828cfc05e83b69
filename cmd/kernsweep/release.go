package main

// release is the version and the commit of a binary that scripts/release built: it
// puts another file in this one's place. It is "" in any other.
const release = ""
