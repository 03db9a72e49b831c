package audit

import (
	"fmt"
	"io"
	"os"

	auditapi "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/plugin/pkg/audit/buffered"
	"k8s.io/apiserver/plugin/pkg/audit/truncate"
)

// backend returns the backend for events, and a function that closes the log file.
func (o *Options) backend() (backend audit.Backend, closeLog func() error, err error) {
	var all []audit.Backend
	closeLog = func() error { return nil }
	if o.Log.Path != "" {
		out, err := o.Log.open()
		if err != nil {
			return nil, nil, fmt.Errorf("open the audit log %s: %w", o.Log.Path, err)
		}
		closeLog = out.Close
		all = append(all, o.Log.wrap(out))
	}
	if w := &o.Webhook; w.ConfigFile != "" {
		hook, err := w.open()
		if err != nil {
			_ = closeLog()
			return nil, nil, fmt.Errorf("initializing audit webhook: %w", err)
		}
		all = append(all, w.Truncate.wrap(modes(hook, w.Mode, w.Batch)))
	}
	if len(all) == 1 {
		return all[0], closeLog, nil
	}
	return audit.Union(all...), closeLog, nil
}

func (l *LogOptions) open() (io.WriteCloser, error) {
	if l.Path == "-" {
		return stdout{os.Stdout}, nil
	}
	return openFile(fileOptions{
		path: l.Path, maxSize: int64(l.MaxSize) << 20, maxAge: l.MaxAge, maxBackups: l.MaxBackups,
		compress: l.Compress,
	})
}

// stdout is not closed with the log.
type stdout struct{ io.Writer }

// Close implements io.Closer.
func (stdout) Close() error { return nil }

func (l *LogOptions) wrap(out io.Writer) audit.Backend {
	b := &logBackend{out: out, legacy: l.Format == FormatLegacy, lenient: l.Mode == ModeBlocking}
	if b.lenient {
		return l.Truncate.wrap(b)
	}
	return l.Truncate.wrap(modes(b, l.Mode, l.Batch))
}

// modes wraps a backend so that requests wait for it according to the mode.
func modes(b audit.Backend, mode string, batch BatchConfig) audit.Backend {
	switch mode {
	case ModeBlockingStrict:
		return b
	case ModeBlocking:
		return lenient{b}
	}
	return buffered.NewBackend(b, batch)
}

func (t *TruncateOptions) wrap(b audit.Backend) audit.Backend {
	if !t.Enabled {
		return b
	}
	return truncate.NewBackend(b, t.TruncateConfig, auditv1.SchemeGroupVersion)
}

// recorder is a backend of our own.
type recorder interface {
	// record is ProcessEvents for one event.
	record(e *auditapi.Event, of extras) bool
	// flushHeld returns when all earlier lines have been written, including held ones.
	flushHeld()
	// hold keeps the event RequestReceived of a request until the next event, or until Record.writeReceived. It
	// returns false if it cannot.
	hold(r *Record) bool
	// dropDeferred cancels hold. It returns false if Record.writeReceived is about to be called.
	dropDeferred(r *Record) bool
}

// extras is extra data passed with an event.
type extras struct {
	annotations annotations // annotations of an event that has none itself
	user        []byte      // the event's user as written by appendUser; nil if not cached
	code        int32       // of the response, if the event has no ResponseStatus; 0 before the response
	// flushed is true if flushHeld is called before the response is sent.
	flushed bool
	// deferred is true if the event RequestReceived is to be written with this one.
	deferred bool
}

// lenient ignores failures to deliver events; the backend has counted them.
type lenient struct{ audit.Backend }

// ProcessEvents implements audit.Sink.
func (l lenient) ProcessEvents(events ...*auditapi.Event) bool {
	l.Backend.ProcessEvents(events...)
	return true
}
