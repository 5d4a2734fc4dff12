-- The control messages of NETBLT, of which a CONTROL packet carries several (RFC 998 section 5, RFC 1030).

local NAME = "trunkline_netblt_control"
if package.loaded[NAME] then return package.loaded[NAME] end

local control = {}

local GO, OK, RESEND = 0, 1, 2
control.TYPES = { [GO] = "GO", [OK] = "OK", [RESEND] = "RESEND" }

-- Messages in the summary of a packet.
local MOST_SUMMARIES = 4

local HEAD = { { "message_type", 1 }, { "message_padding", 1 }, { "sequence", 2 }, { "message_buffer", 4 } }
local OK_BODY = { { "offered_size", 2 }, { "offered_interval", 2 }, { "control_timer", 2 }, { "padding_word", 2 } }
-- The drafts' receivers offer a burst with each RESEND.
local RESEND_BODY = { { "missing_count", 2 }, { "offered_size", 2 }, { "offered_interval", 2 }, { "padding_word", 2 } }
local CLASSIC_RESEND_BODY = { { "missing_count", 2 }, { "padding_word", 2 } }

local function read_ok(reader, fields)
    local values = reader:read(fields, OK_BODY)
    return values and string.format(" %d packets per %d ms", values.offered_size, values.offered_interval)
end

local function read_resend(reader, fields, is_classic)
    local values = reader:read(fields, is_classic and CLASSIC_RESEND_BODY or RESEND_BODY)
    if not values then return nil end
    local numbers = {}
    for at = 1, values.missing_count do
        numbers[at] = reader:field(fields.missing, 2)
        if not numbers[at] then return nil end
    end
    if values.missing_count % 2 == 1 and not reader:field(fields.padding_word, 2) then return nil end
    return " packets " .. table.concat(numbers, " ")
end

-- Adds what follows the head of a message. Returns a summary; nil if the packet ends before, false if the type is unknown.
local function read_body(reader, fields, kind, is_classic)
    if kind == GO then return "" end
    if kind == OK then return read_ok(reader, fields) end
    if kind == RESEND then return read_resend(reader, fields, is_classic) end
    return false
end

-- Adds the next message as a subtree. Returns a summary; nil if the packet ends within it.
local function read_message(reader, fields, expert, is_classic)
    local tree, start = reader.tree, reader.at
    local item = tree:add(fields.message, reader.tvb(start, reader:left()))
    reader.tree = item
    local head = reader:read(fields, HEAD)
    local body = head and read_body(reader, fields, head.message_type, is_classic)
    reader.tree = tree
    item:set_len(reader.at - start)
    if body == false then
        item:add_proto_expert_info(expert.message)
        reader.at = reader.limit
        return "unknown message"
    end
    if not body then return nil end
    local name = string.format("%s(%d)", control.TYPES[head.message_type], head.message_buffer)
    item:set_text(string.format("%s, sequence number %d%s", name, head.sequence, body))
    return string.format("%s #%d%s", name, head.sequence, body)
end

-- Adds the messages of a packet. Returns a summary; nil if the packet ends within one.
function control.read(reader, fields, expert, is_classic)
    local summaries = {}
    while reader:left() > 0 do
        local summary = read_message(reader, fields, expert, is_classic)
        if not summary then return nil end
        summaries[#summaries + 1] = summary
    end
    local more = #summaries > MOST_SUMMARIES and string.format("; … %d messages", #summaries) or ""
    return table.concat(summaries, "; ", 1, math.min(#summaries, MOST_SUMMARIES)) .. more
end

package.loaded[NAME] = control
return control
