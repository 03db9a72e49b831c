package encrypt

import (
	"bytes"
	"time"
)

const (
	// outageAfter is how long a failed decryption must have taken to be a plugin's that does not answer: what is done
	// in process takes microseconds.
	outageAfter = 100 * time.Millisecond
	// outageLasts is how long such a plugin is not asked again. The view is read with many values that one plugin has
	// encrypted, and each question would take the plugin's timeout, of seconds.
	outageLasts = 2 * time.Second
)

// outage is a time in which a plugin is not asked.
type outage struct {
	until time.Time
	err   error
}

var plugins = []byte("k8s:enc:kms:")

// pluginOf returns the plugin that has encrypted a value, as the value's prefix "k8s:enc:kms:v2:name:", "" if it was
// none.
func pluginOf(stored []byte) string {
	rest, ok := bytes.CutPrefix(stored, plugins)
	if !ok {
		return ""
	}
	for range 2 { // the version and the name
		i := bytes.IndexByte(rest, ':')
		if i < 0 {
			return ""
		}
		rest = rest[i+1:]
	}
	return string(stored[:len(stored)-len(rest)])
}

// out returns why a plugin is not asked now, nil if it is.
func (e *Encryption) out(plugin string) error {
	if plugin == "" {
		return nil
	}
	if o, ok := e.outages.Load(plugin); ok && time.Now().Before(o.(*outage).until) {
		return o.(*outage).err
	}
	return nil
}

// note takes down how a question to a plugin went.
func (e *Encryption) note(plugin string, took time.Duration, err error) {
	if plugin != "" && err != nil && took >= outageAfter {
		e.outages.Store(plugin, &outage{until: time.Now().Add(outageLasts), err: err})
	}
}
