package results

const (
	// NotePrinted begins a note of an imported trial: a line as its tool printed it.
	NotePrinted = "printed: "
	// MetricPrinted begins the name of a figure that stands as the tool printed it
	// beside the one that is believed: kernbench's, pooled over load levels.
	MetricPrinted = "printed."
)
