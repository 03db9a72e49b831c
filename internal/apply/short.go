package apply

import "time"

func (o *Ownership) updateShort(live, obj map[string]any, name string, now time.Time) bool { return false }
