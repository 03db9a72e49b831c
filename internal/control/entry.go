package control

import (
	"encoding/json"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Finalizers returns metadata.finalizers of an entry, in any version: metadata is the same in all.
func Finalizers(e *watchcache.Entry) []string {
	raw, err := codec.Field(e.JSON(), "metadata")
	if err != nil {
		return nil
	}
	var meta struct{ Finalizers []string }
	if json.Unmarshal(raw, &meta) != nil {
		return nil
	}
	return meta.Finalizers
}
