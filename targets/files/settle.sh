# Gives files their modes and times. Standard input: mode, time for touch -t, time
# for touch -d, name.
bad=
TZ=UTC0
export TZ
while IFS= read -r line; do
	mode=${line%% *} line=${line#* }
	stamp=${line%% *} line=${line#* }
	other=${line%% *} name=${line#* }
	chmod "$mode" "$name" || exit 1
	touch -t "$stamp" "$name" 2>/dev/null || touch -d "$other" "$name" 2>/dev/null || bad=1
done
if [ -n "$bad" ]; then echo "times not kept"; fi
