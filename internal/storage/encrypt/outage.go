package encrypt

import (
	"bytes"
	"time"
)

const (
	// outageAfter is the least duration of a failed decryption that counts as a plugin timeout: in-process failures
	// take microseconds.
	outageAfter = 100 * time.Millisecond
	// outageLasts is how long such a plugin is not called again. The view reads many values of one plugin, and each
	// call would take the plugin's timeout of seconds.
	outageLasts = 2 * time.Second
)

// outage is a period without calls to a plugin.
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

// out returns the error of a plugin with an outage, nil otherwise.
func (e *Encryption) out(plugin string) error {
	if plugin == "" {
		return nil
	}
	if o, ok := e.outages.Load(plugin); ok && time.Now().Before(o.(*outage).until) {
		return o.(*outage).err
	}
	return nil
}

// note records the result of a call to a plugin.
func (e *Encryption) note(plugin string, took time.Duration, err error) {
	if plugin != "" && err != nil && took >= outageAfter {
		e.outages.Store(plugin, &outage{until: time.Now().Add(outageLasts), err: err})
	}
}
