package config

// Extension adds a program's own kinds or paths to a server. Package extension makes it, and bowsprit serve.
type Extension struct{ content any }

// NewExtension returns an extension with content for the server, a part.Extension: settings stand below parts.
func NewExtension(content any) Extension { return Extension{content} }

// Content returns the content of an extension, nil if NewExtension did not make it.
func Content(e Extension) any { return e.content }

func validateExtensions(all []Extension, p *problems) {
	for i, e := range all {
		if e.content == nil {
			p.add("Extensions[%d] is empty: make it with extension.In", i)
		}
	}
}
