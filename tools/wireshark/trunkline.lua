-- The dissectors of Trunkline: NETBLT, and the laboratory's capsules with what they carry.
--
--   tshark -X lua_script:tools/wireshark/trunkline.lua -r run.pcapng
--
-- To have them always, copy the files of this folder into Wireshark's personal Lua plugin folder (Help > About >
-- Folders). They stand beside each other, because each loads those that it needs.

require "trunkline_netblt"
require "trunkline_capsule"
