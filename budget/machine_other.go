//go:build !linux && !darwin

package budget

// physical is the machine's memory; 0 if it is not known.
func physical() int64 { return 0 }
