package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// progressEvery is how often the line is drawn again.
const progressEvery = 200 * time.Millisecond

// progress counts what has been moved and, on a terminal, draws one line with
// rows, speed and the time left. It may be counted from several goroutines.
type progress struct {
	rows, bytes atomic.Int64
	total       atomic.Int64 // rows to come in all, 0 if unknown
	began       time.Time
	errs        io.Writer
	stop, done  chan struct{}
}

// startProgress draws to errs if a person watches it and quiet is not asked for.
func startProgress(errs io.Writer, quiet bool) *progress {
	p := &progress{began: time.Now(), errs: errs}
	if quiet || !isTerminal(errs) {
		return p
	}
	p.stop, p.done = make(chan struct{}), make(chan struct{})
	go p.draw()
	return p
}

func (p *progress) add(rows, bytes int64) {
	p.rows.Add(rows)
	p.bytes.Add(bytes)
}

// end removes the line and returns the time taken.
func (p *progress) end() time.Duration {
	if p.stop != nil {
		close(p.stop)
		<-p.done
		p.stop = nil
	}
	return time.Since(p.began)
}

func (p *progress) draw() {
	defer close(p.done)
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			fmt.Fprint(p.errs, "\r\x1b[K")
			return
		case <-ticker.C:
			fmt.Fprintf(p.errs, "\r%s\x1b[K", p.line(time.Since(p.began)))
		}
	}
}

// line is the text of one moment.
func (p *progress) line(elapsed time.Duration) string {
	rows, bytes, total := p.rows.Load(), p.bytes.Load(), p.total.Load()
	text := counted(rows, "row") + "  " + speed(bytes, elapsed)
	if total > 0 && rows > 0 {
		left := time.Duration(float64(elapsed) * float64(total-rows) / float64(rows))
		text += fmt.Sprintf("  %d%%  ETA %s", min(100, rows*100/total), max(0, left).Round(time.Second))
	}
	return text
}

// speed is bytes a second.
func speed(bytes int64, elapsed time.Duration) string {
	return bytesText(uint64(float64(bytes)/max(elapsed.Seconds(), 1e-9))) + "/s"
}

// took is a time and, where it was long enough to say something, the speed.
func took(elapsed time.Duration, bytes int64) string {
	if elapsed < time.Second/10 || bytes == 0 {
		return fmt.Sprintf("%.2f s", elapsed.Seconds())
	}
	return fmt.Sprintf("%.2f s, %s", elapsed.Seconds(), speed(bytes, elapsed))
}

// counted is a number of things: 1 file, 2,000 files.
func counted[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(int64(n)) + " " + noun + "s"
}

// grouped writes a number with a comma every three digits.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	first := (len(digits)-1)%3 + 1
	text := digits[:first]
	for i := first; i < len(digits); i += 3 {
		text += "," + digits[i:i+3]
	}
	return sign + text
}
