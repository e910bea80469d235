package ledger

import "context"

// fieldNames reads the names of a hash's fields, in pages and in no order. One that comes or leaves meanwhile may be among them or not.
func (l *Ledger) fieldNames(ctx context.Context, key string) (names []string, err error) {
	seen := make(map[string]bool)
	for cursor := "0"; ; {
		page, err := fieldsScript.Run(ctx, l.client, []string{key}, cursor, keyPage).StringSlice()
		if err != nil {
			return nil, err
		}
		for _, name := range page[1:] {
			if !seen[name] {
				seen[name], names = true, append(names, name)
			}
		}
		if cursor = page[0]; cursor == "0" {
			return names, nil
		}
	}
}
